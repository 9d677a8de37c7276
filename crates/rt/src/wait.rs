//! Waits for something that may not exist: they never end then, as the arms of `select!` need it.

use std::time::Duration;

use tokio::sync::watch;

/// Sleeps; for ever if there is no time to wait for. Cancel safe.
pub async fn sleep_or_never(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Waits until the value changes; for ever if no sender is left. Cancel safe.
pub async fn changed_or_never<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_a_time_or_a_sender_a_wait_never_ends() {
        let hour = Duration::from_secs(3_600);
        sleep_or_never(Some(hour)).await;
        assert!(tokio::time::timeout(hour, sleep_or_never(None)).await.is_err());
        let (sender, mut receiver) = watch::channel(1);
        sender.send_replace(2);
        changed_or_never(&mut receiver).await;
        drop(sender);
        assert!(tokio::time::timeout(hour, changed_or_never(&mut receiver)).await.is_err());
    }
}
