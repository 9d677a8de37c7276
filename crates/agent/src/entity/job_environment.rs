//! The environment of the scripts of a job: where it is, its params, and an API of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::run::JobInputs;
use bellwether_core::words::role_params::{CLUSTER_NAME, CLUSTER_PROFILE};
use serde_json::Value;

use super::task::EntityContext;
use crate::apply::PATH;
use crate::disk;
use crate::job_api::JobApi;

/// File with the job's params, in its working directory.
const PARAMS: &str = "params.json";

/// File with the token of the job's API, in its working directory.
const TOKEN: &str = "token";

/// File that the job's scripts may write, with the outputs of the task.
pub(super) const OUTPUTS: &str = "outputs.json";

/// The environment of a job; its API ends with it.
#[derive(Debug)]
pub(super) struct JobEnvironment {
    variables: BTreeMap<String, String>,
    _api: JobApi,
}

impl JobEnvironment {
    /// Opens the API of a job, and writes what its scripts read into its working directory, which is there and private.
    ///
    /// # Errors
    /// When it cannot listen, or write.
    pub(super) async fn open(context: &EntityContext, inputs: &JobInputs, dir: &Path) -> io::Result<Self> {
        let job = format!("{}/{}", inputs.run, inputs.index);
        let api = JobApi::start(job, context.jobs.clone(), &context.tasks).await?;
        let (params, token) = (dir.join(PARAMS), dir.join(TOKEN));
        let texts = [
            (params.clone(), serde_json::to_string_pretty(&inputs.params)?),
            (token.clone(), api.token().to_owned()),
        ];
        let written = context
            .tasks
            .spawn_blocking(move || texts.iter().try_for_each(|(path, text)| disk::replace(path, text)));
        written.await.map_err(io::Error::other).flatten()?;
        let text = |value: &str| value.to_owned();
        let path = |path: &PathBuf| path.display().to_string();
        let named = |key: &str| inputs.params.get(key).and_then(Value::as_str).map(str::to_owned);
        let variables = [
            ("PATH", Some(search_path())),
            ("BELLWETHER_TASK", Some(text(&inputs.task.task))),
            ("BELLWETHER_WORKFLOW", Some(text(&inputs.workflow))),
            ("BELLWETHER_PARAMS", Some(path(&params))),
            ("BELLWETHER_OUTPUTS", Some(path(&dir.join(OUTPUTS)))),
            ("BELLWETHER_SERVER", Some(text(api.address()))),
            ("BELLWETHER_TOKEN_FILE", Some(path(&token))),
            ("BELLWETHER_NAMESPACE", Some(context.namespace.to_string())),
            ("BELLWETHER_CLUSTER", named(CLUSTER_NAME)),
            ("BELLWETHER_PROFILE", named(CLUSTER_NAME).and_then(|_| named(CLUSTER_PROFILE))),
        ];
        let variables = variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(Self { variables: variables.collect(), _api: api })
    }

    /// Its variables.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        self.variables.clone()
    }
}

/// Where scripts find programs: where all commands do, and this one.
fn search_path() -> String {
    let own = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.display().to_string()));
    own.map_or_else(|| PATH.to_owned(), |own| format!("{PATH}:{own}"))
}
