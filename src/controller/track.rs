//! Which Pods belong to which diagnosis: an index over the Pods that are in init, fed by the watch.
//!
//! A state machine without I/O: it is told what the watch says and answers which diagnoses to look at. What it
//! holds follows the Pods in init, not the cluster.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_runtime::reflector::ObjectRef;

use crate::api::v1alpha1::{ControllerReference, WorkloadReference};
use crate::cluster::owners::{OwnerCache, reference};
use crate::pod::PodView;
use crate::pod::identity::{DiagnosisKey, Identity, group_of};
use crate::pod::progress::InitProgress;

/// Departures remembered for one diagnosis until it is looked at.
const MAX_DEPARTURES: usize = 1000;

/// A Pod that left the selection: deleted, or past init. Which of the two, a GET tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// When that was seen.
    pub at: Timestamp,
}

/// What is known of a diagnosis that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// It is over.
    pub closed: bool,
    /// It is open, and its cause explains why steps take long.
    pub explained: bool,
    /// When it may be removed.
    pub expires_at: Option<Timestamp>,
    /// This process has looked at it.
    pub looked_at: bool,
}

/// The index.
#[derive(Debug, Default)]
pub struct Tracker {
    pods: HashMap<String, Tracked>,
    by_key: HashMap<DiagnosisKey, Members>,
    known: HashMap<DiagnosisKey, Known>,
    owners: OwnerCache,
    /// Jobs whose owner is being asked for.
    asking: HashSet<String>,
    /// UIDs named since a re-list of a scope began; those that are not named are gone.
    relists: HashMap<Scope, HashSet<String>>,
}

/// What one watch covers: a namespace, or all of them.
pub type Scope = Option<String>;

#[derive(Debug)]
struct Tracked {
    key: DiagnosisKey,
    reference: ObjectRef<PodView>,
}

#[derive(Debug, Default)]
struct Members {
    pods: BTreeMap<String, ObjectRef<PodView>>,
    left: Vec<Left>,
}

/// What is to be done about a Pod that the watch has named.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Look at this diagnosis.
    Look(DiagnosisKey),
    /// First ask who owns this Job, then tell again.
    AskJobOwner {
        /// Namespace.
        namespace: String,
        /// The Job.
        job: ControllerReference,
    },
    /// Nothing now: the answer about its Job is on its way, and all its Pods are told again then.
    Nothing,
}

/// Whether a Pod is worth holding: it has init containers that are not all past.
pub fn is_candidate(pod: &PodView) -> bool {
    !matches!(InitProgress::of(pod), InitProgress::None | InitProgress::Done)
}

impl Tracker {
    /// A watch begins to name all Pods of its scope anew.
    pub fn relist_begins(&mut self, scope: &Scope) {
        self.relists.insert(scope.clone(), HashSet::new());
    }

    /// A watch has named all Pods of its scope: those that it did not name have left. Returns what to look at.
    /// `polled` are those that no list names.
    pub fn relist_ends(
        &mut self,
        scope: &Scope,
        polled: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Vec<DiagnosisKey> {
        let Some(named) = self.relists.remove(scope) else {
            return Vec::new();
        };
        let in_scope = |tracked: &Tracked| scope.as_ref().is_none_or(|scope| *scope == tracked.key.namespace);
        let gone: Vec<_> = self
            .pods
            .iter()
            .filter(|(uid, tracked)| in_scope(tracked) && !named.contains(*uid) && !polled(uid))
            .map(|(uid, _)| uid.clone())
            .collect();
        gone.iter().filter_map(|uid| self.forget(uid, now)).collect()
    }

    /// The watch of a scope names a Pod that is in init.
    pub fn seen(&mut self, scope: &Scope, pod: &PodView) -> Answer {
        let uid = pod.uid().to_owned();
        if let Some(named) = self.relists.get_mut(scope) {
            named.insert(uid.clone());
        }
        let job = Identity::of(pod, None).controller.filter(|owner| group_of(&owner.api_version) == "batch");
        let job = job.filter(|owner| owner.kind == "Job");
        let owner = match job {
            None => None,
            Some(job) => match self.owners.get(&job.uid) {
                Some(owner) => owner.and_then(cron_job),
                None if !self.asking.insert(job.uid.clone()) => return Answer::Nothing,
                None => return Answer::AskJobOwner { namespace: pod.namespace().to_owned(), job },
            },
        };
        let key = Identity::of(pod, owner.as_ref()).key;
        let reference = ObjectRef::new(pod.name()).within(pod.namespace());
        self.by_key.entry(key.clone()).or_default().pods.insert(uid.clone(), reference.clone());
        self.pods.insert(uid, Tracked { key: key.clone(), reference });
        Answer::Look(key)
    }

    /// The watch says that a Pod is deleted or no longer in init. Returns what to look at.
    pub fn left(&mut self, uid: &str, now: Timestamp) -> Option<DiagnosisKey> {
        self.forget(uid, now)
    }

    fn forget(&mut self, uid: &str, now: Timestamp) -> Option<DiagnosisKey> {
        let Tracked { key, reference } = self.pods.remove(uid)?;
        let open = self.known.get(&key).is_some_and(|known| !known.closed);
        let members = self.by_key.get_mut(&key)?;
        members.pods.remove(uid);
        if members.pods.is_empty() && !open {
            self.by_key.remove(&key);
            // Nothing was ever said about it: nothing is to be closed.
            return self.known.contains_key(&key).then_some(key);
        }
        if open && members.left.len() < MAX_DEPARTURES {
            members.left.push(Left { name: reference.name, uid: uid.to_owned(), at: now });
        }
        Some(key)
    }

    /// Remembers who owns a ReplicaSet or a Job.
    pub fn owner_is(&mut self, uid: String, owner: Option<OwnerReference>) {
        self.asking.remove(&uid);
        self.owners.insert(uid, owner);
    }

    /// What is known of the owner of a ReplicaSet or a Job.
    pub fn owners(&self) -> &OwnerCache {
        &self.owners
    }

    /// The CronJob behind a Pod's Job, as far as it is known.
    pub fn cron_job_of(&self, pod: &PodView) -> Option<WorkloadReference> {
        let job = pod.controller().filter(|owner| owner.kind == "Job")?;
        self.owners.get(&job.uid)?.and_then(cron_job)
    }

    /// The Pods of a diagnosis that are in init, by UID.
    pub fn pods_of(&self, key: &DiagnosisKey) -> BTreeMap<String, ObjectRef<PodView>> {
        self.by_key.get(key).map(|members| members.pods.clone()).unwrap_or_default()
    }

    /// The departures of a diagnosis since they were last settled.
    pub fn left_of(&self, key: &DiagnosisKey) -> Vec<Left> {
        self.by_key.get(key).map(|members| members.left.clone()).unwrap_or_default()
    }

    /// These departures have been written down.
    pub fn settle(&mut self, key: &DiagnosisKey, departures: &[Left]) {
        let Some(members) = self.by_key.get_mut(key) else {
            return;
        };
        members.left.retain(|left| !departures.contains(left));
        if members.pods.is_empty() && members.left.is_empty() {
            self.by_key.remove(key);
        }
    }

    /// A diagnosis exists.
    pub fn know(&mut self, key: DiagnosisKey, known: Known) {
        self.known.insert(key, known);
    }

    /// A diagnosis does not exist any more.
    pub fn forget_diagnosis(&mut self, key: &DiagnosisKey) {
        self.known.remove(key);
    }

    /// What is known of a diagnosis.
    pub fn known(&self, key: &DiagnosisKey) -> Option<Known> {
        self.known.get(key).copied()
    }

    /// Whether a Pod belongs to an open diagnosis whose cause explains why its steps take long.
    pub fn is_explained(&self, uid: &str) -> bool {
        let key = self.pods.get(uid).map(|tracked| &tracked.key);
        key.and_then(|key| self.known.get(key)).is_some_and(|known| known.explained)
    }

    /// All diagnoses that exist.
    pub fn all_known(&self) -> Vec<(DiagnosisKey, Known)> {
        self.known.iter().map(|(key, known)| (key.clone(), *known)).collect()
    }

    /// How many diagnoses in a namespace have names that begin so: the bound on generated bare Pods.
    pub fn count_known(&self, namespace: &str, prefix: &str) -> usize {
        self.known.keys().filter(|key| key.namespace == namespace && key.name.starts_with(prefix)).count()
    }

    /// Whether a Pod is held.
    pub fn holds(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// How many Pods are held.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}

/// Runs of a CronJob are attempts of one diagnosis; whoever else makes Jobs has them diagnosed one by one.
fn cron_job(owner: &OwnerReference) -> Option<WorkloadReference> {
    (owner.kind == "CronJob").then(|| reference(owner))
}
