//! Routes of profiles.

use bellwether_api::paths;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::param::{Param, ParamSpec};
use bellwether_api::v1::profile::{ParamsPatch, ParamsSpec, Profile, ProfileLive, ProfileRevision};
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Patch, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{params, profiles};

/// Profiles and their revisions.
pub(super) fn profiles(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Profile>, _, _>(
            route(Get, paths::PROFILES, RequiredAccess::get(ObjectKind::Profile), "List profiles").list(),
            profiles::list,
        )
        .add::<Empty, ProfileRevision, _, _>(
            route(
                Get,
                paths::PROFILE,
                RequiredAccess::get(ObjectKind::Profile),
                "Get the newest revision of a profile",
            ),
            profiles::get,
        )
        .add::<ParamsPatch, ProfileRevision, _, _>(
            route(
                Patch,
                paths::PROFILE,
                RequiredAccess::Right(Right::update_field(ObjectKind::Profile, "/params").partial()),
                "Change single params of a profile",
            )
            .patches()
            .query(&["reason"])
            .conditional(),
            profiles::patch,
        )
        .add::<ParamsSpec, ProfileRevision, _, _>(
            route(
                Put,
                paths::PROFILE,
                RequiredAccess::update_field(ObjectKind::Profile, "/params"),
                "Set all params of a profile",
            )
            .conditional(),
            profiles::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::PROFILE,
                RequiredAccess::delete(ObjectKind::Profile),
                "Delete a profile and its revisions",
            ),
            profiles::delete,
        )
}

/// Whether a profile is live, and its revisions.
pub(super) fn revisions(routes: Routes) -> Routes {
    routes
        .add::<ProfileLive, Profile, _, _>(
            route(
                Put,
                paths::PROFILE_LIVE,
                RequiredAccess::update_field(ObjectKind::Profile, "/live"),
                "Make a profile live, or no longer live",
            )
            .conditional(),
            profiles::put_live,
        )
        .add::<Empty, Page<ProfileRevision>, _, _>(
            route(
                Get,
                paths::PROFILE_REVISIONS,
                RequiredAccess::get(ObjectKind::Profile),
                "List a profile's revisions",
            ),
            profiles::profile_revisions,
        )
        .add::<Empty, ProfileRevision, _, _>(
            route(
                Get,
                paths::PROFILE_REVISION,
                RequiredAccess::NodeOr(Right::get(ObjectKind::Profile)),
                "Get one revision of a profile",
            ),
            profiles::profile_revision,
        )
}

/// Declared params.
pub(super) fn params(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Param>, _, _>(
            route(Get, paths::PARAMS, RequiredAccess::get(ObjectKind::Param), "List declared params").list(),
            params::list,
        )
        .add::<Empty, Param, _, _>(
            route(Get, paths::PARAM, RequiredAccess::get(ObjectKind::Param), "Get a declared param"),
            params::get,
        )
        .add::<ParamSpec, Param, _, _>(
            route(Put, paths::PARAM, RequiredAccess::update(ObjectKind::Param), "Declare a param").creates(),
            params::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::PARAM,
                RequiredAccess::delete(ObjectKind::Param),
                "Delete the declaration of a param; its values stay",
            ),
            params::delete,
        )
}
