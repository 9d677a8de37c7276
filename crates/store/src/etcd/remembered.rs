//! The members of an etcd that were learnt, in a file: for a start at which none of the configured ones is there any more. What was learnt with
//! other endpoints in the configuration is of another etcd, perhaps, and not used.

use std::io;
use std::path::Path;

use tokio::fs;
use tokio::io::AsyncWriteExt;

/// What was learnt of an etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remembered {
    /// The id of the etcd.
    pub(super) cluster: u64,
    /// URLs of its members.
    pub(super) members: Vec<String>,
}

/// What the file has, if it was written with these endpoints in the configuration; `None` if it is not there or does not read.
pub(super) async fn read(file: &Path, configured: &[String]) -> Option<Remembered> {
    let text = fs::read_to_string(file).await.ok()?;
    let all = |word: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(first, _)| *first == word).map(|(_, rest)| rest.to_owned()).collect::<Vec<String>>()
    };
    let cluster = u64::from_str_radix(all("cluster").first()?, 16).ok()?;
    let remembered = Remembered { cluster, members: all("member") };
    (all("configured") == configured && !remembered.members.is_empty()).then_some(remembered)
}

/// URLs of the members that a server has learnt and remembered in this file, with these endpoints in its configuration; none if there is no file.
pub async fn members(file: &Path, configured: &[String]) -> Vec<String> {
    read(file, configured).await.map(|remembered| remembered.members).unwrap_or_default()
}

/// Writes the file, unless it says so already.
pub(super) async fn write(file: &Path, configured: &[String], remembered: &Remembered) -> io::Result<()> {
    if read(file, configured).await.as_ref() == Some(remembered) {
        return Ok(());
    }
    let line = |word: &'static str| move |url: &String| format!("{word} {url}\n");
    let mut text = format!("cluster {:x}\n", remembered.cluster);
    text.extend(configured.iter().map(line("configured")));
    text.extend(remembered.members.iter().map(line("member")));
    let unfinished = file.with_extension("new");
    let mut made = fs::File::create(&unfinished).await?;
    made.write_all(text.as_bytes()).await?;
    made.sync_all().await?;
    fs::rename(&unfinished, file).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_learnt_is_read_again_with_the_same_configuration_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("etcd-members");
        let [one, two] = ["https://a:1", "https://b:2"].map(str::to_owned);
        assert_eq!(read(&file, std::slice::from_ref(&one)).await, None);
        let learnt = Remembered { cluster: u64::MAX, members: vec![two.clone(), one.clone()] };
        for _ in 0..2 {
            write(&file, std::slice::from_ref(&one), &learnt).await.unwrap();
            assert_eq!(read(&file, std::slice::from_ref(&one)).await, Some(learnt.clone()));
        }
        assert_eq!(read(&file, &[two, one.clone()]).await, None);
        for damaged in [
            "",
            "cluster x\nconfigured https://a:1\nmember https://a:1\n",
            "cluster 1\nconfigured https://a:1\n",
        ] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(read(&file, std::slice::from_ref(&one)).await, None, "{damaged}");
        }
    }
}
