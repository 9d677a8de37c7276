//! The OSDs of an ensemble of Ceph, as they are shown, `ensemble remove-osd` and `ensemble replace-osd`.

use bellwether_api::v1::ensemble::osds::{EnsembleOsd, OsdPhase, RemoveOsd, ReplaceOsd};
use bellwether_api::v1::ensemble::service::CephSpec;
use bellwether_api::v1::ensemble::status::{EnsembleStatus, RefusedDevice};
use bellwether_core::words::plural::plural;

use crate::args::{Consent, EnsembleFlags, NamedOsd};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{Failure, LocalFault};
use crate::show::table;
use crate::show::time::date;

/// Asks that an OSD is removed, after the question whether that is meant; or withdraws that.
pub(super) async fn remove(
    context: &Context,
    (name, osd): (&str, NamedOsd),
    (withdraw, reason): (bool, String),
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let (osd, what) = found(context, name, osd).await?;
    let request = RemoveOsd { osd, withdraw, reason };
    if !request.withdraw {
        confirm(
            &format!(
                "OSD {osd}{what}: its data go to others; once the store says that none are lost, it is stopped and forgotten, and its device is \
                 not taken again\nremove OSD {osd} of ensemble {name}?"
            ),
            consent,
        )?;
    }
    client.remove_osd(namespace, name, &request).await?;
    let what = if request.withdraw { "stays" } else { "is to be removed" };
    context.show.changed(&format!("ensemble {name}: OSD {osd} {what}"));
    if !request.withdraw {
        context.show.note(&format!("see how far it is: bellwether why ensemble/{name}"));
    }
    Ok(())
}

/// Asks that an OSD is replaced by one with another device, after the question whether that is meant; or withdraws that.
pub(super) async fn replace(
    context: &Context,
    (name, osd): (&str, NamedOsd),
    (device, reason): (Option<String>, String),
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let (osd, what) = found(context, name, osd).await?;
    if let Some(device) = &device {
        confirm(
            &format!(
                "OSD {osd}{what}: its data go to others; once the store says that none are lost, it is stopped, and device {device} gets its \
                 number in the store and its data\nreplace OSD {osd} of ensemble {name}?"
            ),
            consent,
        )?;
    }
    let withdraw = device.is_none();
    let what = device.as_ref().map_or_else(
        || "stays".to_owned(),
        |device| format!("is to be replaced by one with device {device}"),
    );
    client.replace_osd(namespace, name, &ReplaceOsd { osd, device, withdraw, reason }).await?;
    context.show.changed(&format!("ensemble {name}: OSD {osd} {what}"));
    if !withdraw {
        context.show.note(&format!("see how far it is: bellwether why ensemble/{name}"));
    }
    Ok(())
}

/// The number of an OSD that is named, and what it is.
async fn found(context: &Context, name: &str, osd: NamedOsd) -> Result<(u64, String), Failure> {
    let ensemble = context.client.ensemble(context.namespace.as_str(), name).await?;
    let osds = ensemble.status.map(|status| status.osds).unwrap_or_default();
    let osd = match osd {
        NamedOsd::Own(number) => number,
        NamedOsd::Store(number) => numbered(&osds, number).ok_or_else(|| missing(name, number))?,
    };
    let what = osds.iter().find(|of| of.number == osd).map(|of| {
        let id = of.store_number.map(|number| format!(" (osd.{number} of the store)")).unwrap_or_default();
        format!("{id} on node {} with device {}", of.node, of.device)
    });
    Ok((osd, what.unwrap_or_default()))
}

/// The number of the OSD to which the store gave this one. It gives that of a removed one to another.
fn numbered(osds: &[EnsembleOsd], number: u32) -> Option<u64> {
    let named = osds.iter().filter(|osd| osd.store_number == Some(number));
    named.filter(|osd| osd.state != OsdPhase::Removed).map(|osd| osd.number).next()
}

fn missing(name: &str, number: u32) -> Failure {
    Failure::local(LocalFault::Missing, format!("find osd.{number} among the OSDs of ensemble {name}"))
        .hint(format!("see: bellwether ensemble get {name}"))
}

/// The OSDs and what their nodes say of them; nothing where there are none.
pub(super) fn lines(status: &EnsembleStatus) -> Vec<String> {
    if status.osds.is_empty() {
        return status.refused_devices.iter().map(RefusedDevice::line).collect();
    }
    let rows = status.osds.iter().map(|osd| {
        let EnsembleOsd { number, node, device, state, since_ms, store_number, is_up, .. } = osd;
        let up = match is_up {
            Some(true) => "up",
            Some(false) => "down",
            None => "-",
        };
        let unwanted = match &osd.successor {
            Some(device) => format!(", device {device} takes its place"),
            None if osd.is_unwanted && *state != OsdPhase::Removed => ", to be removed".to_owned(),
            None => String::new(),
        };
        vec![
            number.to_string(),
            node.clone(),
            device.clone(),
            format!("{state}{unwanted}"),
            store_number.map_or_else(|| "-".to_owned(), |number| format!("osd.{number}")),
            up.to_owned(),
            date(*since_ms),
        ]
    });
    let head = ["osd", "node", "device", "state", "id", "health", "since"];
    let mut lines = vec![String::new(), table(&head, rows)];
    lines.extend(status.osds.iter().filter_map(|osd| {
        let message = osd.message.as_ref()?;
        Some(format!("OSD {} on node {} {message}", osd.number, osd.node))
    }));
    lines.extend(status.refused_devices.iter().map(RefusedDevice::line));
    lines
}

/// How many OSDs work, of how many that there are; nothing where there are none.
pub(super) fn working_of(status: &EnsembleStatus) -> String {
    let present = status.osds.iter().filter(|osd| osd.state != OsdPhase::Removed);
    match present.clone().count() {
        0 => String::new(),
        all => {
            let working = present.filter(|osd| osd.is_well()).count();
            format!(", {working} of {}", plural(all, "OSD"))
        }
    }
}

/// The settings of Ceph with those that are flags.
pub(super) fn changed(ceph: &mut CephSpec, change: &EnsembleFlags) {
    ceph.port = change.port.or(ceph.port);
    ceph.replicas = change.replicas.or(ceph.replicas);
    for device in &change.device {
        if !ceph.devices.contains(device) {
            ceph.devices.push(device.clone());
        }
    }
    ceph.devices.retain(|device| !change.no_device.contains(device));
}
