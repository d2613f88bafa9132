//! A bucket of an object store: S3 and what speaks like it, Google Cloud Storage, Azure.
//!
//! A record is an object, written whole by one request. One that must not be there yet is put on that condition
//! (`If-None-Match`, or generation 0), which all three keep; nothing is locked. Requests that fail for a moment are repeated by
//! the library, but for a conditional put whose answer was lost: it may have been done. So a new record carries a mark of its
//! own, and the attempt that finds its mark on it has created it.

#[cfg(test)]
mod server;

use crate::{Error, Store};
use object_store::path::Path as Name;
use object_store::{
    Attribute, Attributes, GetOptions, GetResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload,
};
use reqwest::Url;
use std::collections::hash_map::RandomState;
use std::error::Error as _;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::runtime::{Builder, Runtime};

/// How the environment's names begin that say accounts, regions and endpoints.
const ACCOUNTS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// How long one request may take: a run's archive has to pass in that time.
const TIMEOUT: (&str, &str) = ("timeout", "2 minutes");

/// How long is waited before a conditional put is repeated whose answer was lost, each time, in milliseconds.
const WAITS: [u64; 5] = [200, 500, 1000, 2000, 5000];

/// How much of what a server says is shown.
const SHOWN: usize = 300;

/// What a created record carries.
const MARK: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("niwaki"));

/// A bucket, or a prefix in one.
pub struct BucketStore {
    name: String,
    store: Box<dyn ObjectStore>,
    under: Name,
    runtime: Runtime,
}

impl BucketStore {
    /// Opens a bucket by its address, e.g. `s3://bucket/prefix`, with what the environment says of the account.
    ///
    /// # Errors
    /// Where the address is none, the bucket is missing, or it may not be read.
    pub fn open(address: &str) -> Result<Self, Error> {
        let account = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let known = ACCOUNTS.iter().any(|begins| name.starts_with(begins));
            Some((name, value.into_string().ok().filter(|_| known)?))
        });
        Self::with(address, account)
    }

    /// Opens a bucket with what is said here of the account.
    fn with(address: &str, account: impl Iterator<Item = (String, String)>) -> Result<Self, Error> {
        let no_store = |mend: String| Error::NoStore { came: address.to_owned(), mend };
        let url = Url::parse(address).map_err(|error| no_store(error.to_string()))?;
        // A process has one provider of ciphers; that another part chose one is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = [TIMEOUT].map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
        let (store, under) = object_store::parse_url_opts(&url, options.chain(account))
            .map_err(|error| no_store(one_line(&error)))?;
        // One thread keeps connections alive while nobody asks.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|source| Error::Disk { path: address.into(), source })?;
        let opened = Self { name: address.to_owned(), store, under, runtime };
        opened.list(".plans")?;
        Ok(opened)
    }

    fn at(&self, name: &str) -> Name {
        self.under.parts().chain(Name::from(name).parts()).collect()
    }

    /// An object, or its head alone; nothing where there is none.
    fn got(&self, name: &Name, head: bool) -> Result<Option<GetResult>, Error> {
        let options = GetOptions { head, ..GetOptions::default() };
        self.found(self.runtime.block_on(self.store.get_opts(name, options)))
    }

    fn found<T>(&self, answer: object_store::Result<T>) -> Result<Option<T>, Error> {
        match answer {
            Ok(found) => Ok(Some(found)),
            // A bucket that is gone is not a missing record.
            Err(object_store::Error::NotFound { source, .. })
                if !source.to_string().contains("NoSuchBucket") =>
            {
                Ok(None)
            }
            Err(error) => Err(self.refused(&error)),
        }
    }

    fn refused(&self, error: &object_store::Error) -> Error {
        let reason = one_line(error);
        let mend = match status(error) {
            _ if reason.contains("RequestTimeTooSkewed") => {
                "this machine's clock is off; set it, and run the same command again"
            }
            Some(404) => "make the bucket first, or name another",
            Some(401 | 403) => {
                "the environment (AWS_…, GOOGLE_…, AZURE_…) has to name an account that may read, write and list it"
            }
            _ => "what is there is kept; run the same command again",
        };
        Error::Remote { place: self.name.clone(), reason, mend }
    }
}

impl Store for BucketStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(found) = self.got(&self.at(name), false)? else { return Ok(None) };
        let bytes = self.runtime.block_on(found.bytes());
        bytes.map(|bytes| Some(bytes.to_vec())).map_err(|error| self.refused(&error))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (name, payload) = (self.at(name), PutPayload::from(bytes.to_vec()));
        let put = self.runtime.block_on(self.store.put(&name, payload));
        put.map(drop).map_err(|error| self.refused(&error))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let (name, payload) = (self.at(name), PutPayload::from(bytes.to_vec()));
        // Every state of hashing is another, by the system's own noise.
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        let attributes: Attributes = [(MARK, mark.clone())].into_iter().collect();
        let mut waits = WAITS.iter();
        loop {
            let absent =
                PutOptions { mode: PutMode::Create, attributes: attributes.clone(), ..PutOptions::default() };
            let error = match self.runtime.block_on(self.store.put_opts(&name, payload.clone(), absent)) {
                Ok(_) => return Ok(true),
                Err(error @ object_store::Error::AlreadyExists { .. }) => {
                    if let Some(stands) = self.got(&name, true)? {
                        return Ok(stands.attributes.get(&MARK).is_some_and(|found| found.as_ref() == mark));
                    }
                    // Another's put was under way, and came to nothing.
                    error
                }
                Err(error @ object_store::Error::Generic { .. }) => error,
                Err(error) => return Err(self.refused(&error)),
            };
            match waits.next() {
                Some(wait) => std::thread::sleep(Duration::from_millis(*wait)),
                None => return Err(self.refused(&error)),
            }
        }
    }

    fn list(&self, under: &str) -> Result<Vec<String>, Error> {
        let under = self.at(under);
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(&under)));
        let listed = listed.map_err(|error| self.refused(&error))?;
        let mut names: Vec<String> = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename().map(ToOwned::to_owned))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    fn written(&self, name: &str) -> Result<Option<SystemTime>, Error> {
        Ok(self.got(&self.at(name), true)?.map(|found| found.meta.last_modified.into()))
    }
}

/// The status that a server answered with. A listing's error has no kind of its own, but says it.
fn status(error: &object_store::Error) -> Option<u16> {
    let said = error.to_string();
    let (_, behind) = said.split_once("status code: ")?;
    behind.get(..3)?.parse().ok()
}

/// What the library says, without the page around it that the server sent.
fn one_line(error: &object_store::Error) -> String {
    let said = error.to_string();
    let tagged = |tag: &str| {
        let (_, rest) = said.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner)
    };
    let words = if let (Some(code), Some(message)) = (tagged("Code"), tagged("Message")) {
        format!("{code}: {message}")
    } else {
        // What was asked and how often stands before the dash; why it failed, at the end of the chain.
        let mut words = said.rsplit_once(" - ").map_or(said.as_str(), |(_, why)| why).to_owned();
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(|cause| cause.source()) {
            cause = Some(deeper);
        }
        if let Some(root) = cause.map(ToString::to_string).filter(|root| !words.contains(root)) {
            words = format!("{words}: {root}");
        }
        words
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::server::{BUCKET, Fault, Server};
    use super::*;
    use crate::Leases;
    use std::sync::Arc;

    fn bucket(server: &Server, under: &str) -> Result<BucketStore, Error> {
        BucketStore::with(&format!("s3://{under}"), server.account())
    }

    /// Every third request fails, each time in another way.
    fn often(request: usize) -> Fault {
        match request % 15 {
            2 => Fault::Status(500, "InternalError"),
            5 => Fault::Cut,
            8 => Fault::Lost,
            11 => Fault::Status(503, "SlowDown"),
            14 => Fault::Late,
            _ => Fault::None,
        }
    }

    #[test]
    fn records_are_kept_by_name_under_a_prefix() {
        let server = Server::start(|_| Fault::None);
        let (one, other) =
            (bucket(&server, "bucket/a/b").unwrap(), bucket(&server, &format!("{BUCKET}/c")).unwrap());
        let name = "forty/tempered:0.2/fast cell/0/7.zip";
        assert_eq!((one.read(name).unwrap(), one.written(name).unwrap()), (None, None));
        one.write(name, b"first").unwrap();
        one.write(name, b"second").unwrap();
        assert_eq!(one.read(name).unwrap().as_deref(), Some(&b"second"[..]));
        assert!(one.written(name).unwrap().is_some() && one.folder().is_none());
        assert_eq!((other.read(name).unwrap(), server.objects().len()), (None, 1));
        for name in ["units/10.1", "units/9.1", "units/9.1.done", "units/deeper/1.1", "units-clock/one"] {
            assert!(one.create(name, b"{}").unwrap());
        }
        assert_eq!(one.list("units").unwrap(), ["10.1", "9.1", "9.1.done"]);
        assert_eq!(one.list("nothing").unwrap(), [""; 0]);
    }

    #[test]
    fn of_many_processes_one_creates_a_record_however_the_server_fails() {
        let server = Server::start(often);
        let created = |thread: usize| {
            let bucket = bucket(&server, BUCKET).unwrap();
            let mine =
                |name: &usize| bucket.create(&name.to_string(), thread.to_string().as_bytes()).unwrap();
            (0..20).filter(mine).collect::<Vec<_>>()
        };
        let created: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|thread| scope.spawn(move || created(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut all: Vec<usize> = created.concat();
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
        // What stands is what the one who was told so has written.
        let objects = server.objects();
        for (thread, names) in created.iter().enumerate() {
            assert!(names.iter().all(|name| objects[&name.to_string()] == thread.to_string().as_bytes()));
        }
        // Six listings and 120 puts, and what had to be asked again.
        assert!(server.requests() > 150, "{}", server.requests());
    }

    #[test]
    fn a_put_whose_answer_was_lost_is_known_again() {
        // The first request lists, the second puts.
        let server = Server::start(|request| if request == 1 { Fault::Lost } else { Fault::None });
        let bucket = bucket(&server, BUCKET).unwrap();
        assert!(bucket.create("unit", b"the same").unwrap());
        // It was put, found by its mark, and is nobody else's; the same bytes are no mark.
        assert_eq!(server.requests(), 4);
        assert!(!bucket.create("unit", b"the same").unwrap());
    }

    #[test]
    fn leases_stand_on_a_bucket_that_fails() {
        let server = Server::start(often);
        let leases = |holder: &str| {
            let store = Arc::new(bucket(&server, "bucket/runs").unwrap());
            Leases::new(store, ".plans/p/units", holder.to_owned(), Duration::from_secs(2))
        };
        let (one, other) = (leases("one"), leases("other"));
        let held = one.begin(3, 1).unwrap().unwrap();
        assert!(other.begin(3, 1).unwrap().is_none());
        assert_eq!(other.silent(3, 1, other.now().unwrap()).unwrap(), None);
        drop(held);
        // The server's clock counts whole seconds.
        std::thread::sleep(Duration::from_millis(4100));
        assert!(other.silent(3, 1, other.now().unwrap()).unwrap().is_some());
        other.begin(3, 2).unwrap().unwrap().end(crate::Ending::Done, None).unwrap();
        assert_eq!(one.survey().unwrap().done(3), Some(2));
    }

    #[test]
    fn refusals_are_one_line_with_the_mend() {
        let refusal = |faults, address: &str| {
            let said = bucket(&Server::start(faults), address).err().unwrap().to_string();
            assert_eq!(said.lines().count(), 1, "{said}");
            said
        };
        assert_eq!(
            refusal(|_| Fault::None, "nowhere/runs"),
            "s3://nowhere/runs: NoSuchBucket: as the test asks; make the bucket first, or name another"
        );
        assert_eq!(
            refusal(|_| Fault::Status(403, "AccessDenied"), BUCKET),
            "s3://bucket: AccessDenied: as the test asks; the environment (AWS_…, GOOGLE_…, AZURE_…) has to name an account \
             that may read, write and list it"
        );
        assert_eq!(
            refusal(|_| Fault::Status(403, "RequestTimeTooSkewed"), BUCKET),
            "s3://bucket: RequestTimeTooSkewed: as the test asks; this machine's clock is off; set it, and run the same \
             command again"
        );
    }
}
