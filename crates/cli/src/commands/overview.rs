//! `status` and `why`.

use crate::context::Context;
use crate::exit::{Ended, Exit};
use crate::show::age::date;
use crate::show::paint::Tone;
use crate::show::{print, table};

pub(super) async fn status(context: &Context) -> Ended {
    let overview = context.client.overview(&context.namespace).await?;
    let names = || overview.entities.iter().map(|entity| entity.name.clone()).collect();
    context.show.data(&overview, names, |_| {
        let paint = context.show.paint;
        let leads = match (&overview.leader, overview.term) {
            (Some(leader), Some(term)) => {
                format!("{} leads since {}, term {term}", leader.server, date(leader.since_ms))
            }
            (Some(_) | None, _) => paint.text(Tone::Bad, "nobody leads: nothing is decided"),
        };
        let servers = match overview.servers {
            0 | 1 => String::new(),
            several => format!("{several} of them, "),
        };
        let counts = overview.nodes.iter().map(|(contact, count)| format!("{count} {contact}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let nodes = if counts.is_empty() { "none yet".to_owned() } else { counts };
        let mut lines = vec![
            format!("namespace  {}", paint.text(Tone::Strong, &overview.namespace)),
            format!("server     {} ({servers}{leads})", overview.server_version),
            format!("nodes      {nodes}"),
        ];
        if let Some(trouble) = &overview.store_trouble {
            lines.push(format!("store      {}", paint.text(Tone::Bad, trouble)));
        }
        if overview.paused > 0 {
            lines.push(format!("paused     {}", overview.paused));
        }
        if overview.failing > 0 {
            lines.push(format!("failing    {}", paint.text(Tone::Bad, &overview.failing.to_string())));
        }
        lines.push(format!("events     {}", overview.last_event));
        lines.push(String::new());
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let rows = overview.entities.iter().map(|entity| {
            let versions = [&entity.target, &entity.last_known_good, &entity.last_known_bad].map(dash);
            let [target, good, bad] = versions;
            vec![entity.name.clone(), entity.targets.to_string(), target, good, bad, entity.why.clone()]
        });
        let header = ["entity", "targets", "target", "known good", "known bad", "where it stands"];
        lines.push(table(&header, rows));
        lines.join("\n")
    })?;
    Ok(Exit::Yes)
}

pub(super) async fn why(context: &Context, subject: &str) -> Ended {
    let why = context.client.why(&context.namespace, subject).await?;
    if context.is_data() {
        context.show.data(&why, || vec![why.subject.clone()], |_| String::new())?;
    } else {
        print(&why.lines.join("\n"));
    }
    Ok(Exit::Yes)
}
