//! What happens to the machines, and what people ask for.

#[derive(Debug, Clone)]
pub(super) enum Act {
    /// The client writes to whoever takes writes.
    Write,
    /// A replica gets what its primary has.
    Copy(usize),
    /// Its process ends and is started anew.
    Restart(usize),
    /// Its process ends, and is started anew after so many seconds.
    End(usize, u64),
    /// Its agent is cut off; its Redis is not.
    Cut(usize),
    /// The whole machine is cut off.
    Isolate(usize),
    /// Its Redis is cut off from the others; its agent is not.
    CutPeers(usize),
    Heal(usize),
    /// A person decommissions a machine of which nothing is heard; its Redis may live.
    Decommission(usize),
    Drain(usize),
    /// Its disk is full, or is not any more.
    Fill(usize),
    /// The same, and its agent cannot store another order.
    FillAll(usize),
    Size(u32),
    /// A person acknowledges the last failover.
    Acknowledge,
    /// A person has the primary hand over to the member of this machine.
    HandOver(usize),
    /// A person withdraws that, before it has begun.
    Withdraw,
    /// A person asks that all members are restarted.
    RestartAll,
    /// A person asks for another member in the place of the one of this machine.
    Replace(usize),
    Pass(u64),
}
