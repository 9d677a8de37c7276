//! `server join-token` and `server join`: another server for a control plane.

use bellwether_api::client::secret::Secret;
use bellwether_api::v1::server_join::NewServerToken;
use bellwether_core::words::time::Span;
use bellwether_server::join::{EtcdFiles, JoinError, JoinRequest, join as join_from};

use crate::args::{Global, ServerJoin};
use crate::context::{Context, read};
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::Show;

pub(super) async fn create_token(context: &Context, expires_in: Option<Span>) -> CommandResult {
    let request = NewServerToken { expires_in: expires_in.map(|span| span.to_string()) };
    let made = context.client.create_server_token(&request).await?;
    context.show.data(&made, || vec![made.secret.clone()], |_| made.secret.clone())?;
    context.show.changed("join token: created; it is shown only once and admits one server, once");
    Ok(Exit::Yes)
}

pub(super) async fn join(global: &Global, asked: ServerJoin) -> CommandResult {
    let token = read(&asked.token_file, "the join token")?;
    let request = JoinRequest {
        from: asked.from,
        token: Secret::new(token.trim()),
        name: asked.name,
        config_file: asked.config,
        data_dir: asked.data_dir,
        listen: asked.listen,
        address: Some(asked.address),
        etcd_files: EtcdFiles {
            ca_file: asked.etcd_ca_file,
            cert_file: asked.etcd_cert_file,
            key_file: asked.etcd_key_file,
        },
    };
    let joined = join_from(&request).await.map_err(not_joined)?;
    let show = Show::new(global);
    let (dir, config) = (joined.data_dir.display(), joined.config_file.display());
    show.data(
        &joined,
        || vec![joined.config_file.display().to_string()],
        |_| format!("joined installation {} as {}; its keys are in {dir}", joined.installation, request.name),
    )?;
    match joined.config_is_new {
        true => show.note(&format!("wrote the configuration {config}")),
        false => show.note(&format!("the configuration {config} is used as it is")),
    }
    if !joined.missing_files.is_empty() {
        let files: Vec<String> = joined.missing_files.iter().map(|file| file.display().to_string()).collect();
        show.note(&format!(
            "first put these files for etcd in place, or correct {config}: {}",
            files.join(", ")
        ));
    }
    show.note(&format!("next: bellwether server run --config {config}"));
    Ok(Exit::Yes)
}

/// A failed join: the exit code tells a refusal from an unreachable server.
fn not_joined(error: JoinError) -> Failure {
    let what = error.to_string();
    let exit = match error {
        JoinError::Unfinished(_) => LocalFault::Output.exit(),
        JoinError::Call { source, .. } => Failure::from(source).exit,
        JoinError::Config(error) => return error.into(),
        JoinError::Token(_) | JoinError::Contradiction { .. } => Exit::Usage,
        JoinError::Present { .. } | JoinError::Keys(_) => LocalFault::DataDirectory.exit(),
        JoinError::File { .. } => LocalFault::Output.exit(),
    };
    Failure::new(exit, what)
}
