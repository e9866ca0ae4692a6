package viewkeeper

import "time"

// Status is what a node says of itself: the answer of /v1/status and the value of
// its record on the nodes topic.
type Status struct {
	Node    string `json:"node"`
	Catalog string `json:"catalog"`
	// HTTP is the address that clients reach the node at.
	HTTP    string  `json:"http"`
	Version Version `json:"version"`
	// Digest is over the live rows: two nodes at one version must have the same.
	Digest string `json:"digest"`
	// BuildDigest is over what builds here, with the schemas.
	BuildDigest string `json:"build_digest"`
	// ViewState is goka's partition state, the lowest of all partitions.
	ViewState string `json:"view_state"`
	Ready     bool   `json:"ready"`
	// ReadyReasons and Degraded are the codes of reasons (see below): why the node
	// is not ready, and what is wrong with a ready one. Details has a sentence for
	// each code: what happened and what to do.
	ReadyReasons []string          `json:"ready_reasons"`
	Degraded     []string          `json:"degraded"`
	Details      map[string]string `json:"details,omitempty"`
	// Since is when ReadyReasons or Degraded last changed.
	Since time.Time `json:"since,omitzero"`
	// StaleFor is the age in seconds of what is served, 0 when it is current.
	StaleFor    float64 `json:"stale_for"`
	Definitions int     `json:"definitions"`
	// Broken counts the definitions that do not build here; BrokenDefinitions
	// names the first 100 of them, sorted.
	Broken            int       `json:"broken"`
	BrokenDefinitions []Name    `json:"broken_definitions"`
	Owner             string    `json:"owner"`
	Epoch             Epoch     `json:"epoch"`
	Engine            string    `json:"engine"`
	BaseDigest        string    `json:"base_digest"`
	At                time.Time `json:"at"`
	// Instance is random and new at each start: by it two nodes that were given one
	// id are told from one node.
	Instance string `json:"instance,omitempty"`
}

// BlockedKey is the key of a [Blocked] on the nodes topic. No node's id begins so.
const BlockedKey = "#blocked"

// Blocked is what a process says that the group made the owner, and that may not own the
// catalog as its topics are. It writes nothing to the table then, not even that it lives.
type Blocked struct {
	// Node is the process's node id, At when it said so. Their names are not those of
	// Status, so that no reader takes a Blocked for a node.
	Node string    `json:"process"`
	At   time.Time `json:"said_at"`
	// Reasons are codes with a sentence each, as in [Status].
	Reasons map[string]string `json:"reasons"`
}

// The codes of reasons.
const (
	ReasonStarting       = "STARTING"        // nothing has been read yet
	ReasonCatchingUp     = "CATCHING_UP"     // the table is being read
	ReasonBuilding       = "BUILDING"        // the first factory is being built
	ReasonKafkaAway      = "KAFKA_AWAY"      // the brokers do not answer
	ReasonKafkaDenied    = "KAFKA_DENIED"    // the brokers do not let this process do what it must
	ReasonNodeIDTaken    = "NODE_ID_TAKEN"   // another process has this one's node id
	ReasonStale          = "STALE"           // what is served is older than --max-stale
	ReasonTopicMissing   = "TOPIC_MISSING"   // a topic is not there yet
	ReasonTopicSettings  = "TOPIC_SETTINGS"  // a topic has wrong settings
	ReasonTopicRecreated = "TOPIC_RECREATED" // a topic is not the one known
	ReasonTableBehind    = "TABLE_BEHIND"    // a committed offset lies beyond the commit row
	ReasonTableTruncated = "TABLE_TRUNCATED" // the table's beginning was deleted
	ReasonTableDamaged   = "TABLE_DAMAGED"   // definitions are missing from the table, or are others
	ReasonStatementsLost = "STATEMENTS_LOST" // input vanished before it was judged
	ReasonNoOwner        = "NO_OWNER"        // no live owner
	ReasonNoOwnerAtEnd   = "NO_OWNER_AT_TABLE_END"
	ReasonBaseDiffers    = "BASE_DIFFERS"   // this base is not the owner's
	ReasonDigestDiffers  = "DIGEST_DIFFERS" // other rows than another node's at one version
	ReasonEngineDown     = "ENGINE_DOWN"    // the engine is being restarted
	ReasonBuildFailed    = "BUILD_FAILED"   // the last build failed for reasons of its own
	ReasonCopyFailed     = "COPY_FAILED"    // the node's copy of the table can't be written
	ReasonBroken         = "BROKEN_DEFINITIONS"
	ReasonOwnerless      = "OWNERLESS_TOO_LONG" // late writes lay unhealed for longer than the compaction lag
	ReasonUnknownRecords = "UNKNOWN_RECORDS"    // the table holds records of a newer format
	ReasonDataDir        = "DATA_DIR_FAILED"    // the data directory can't be written or read
	ReasonFailing        = "FAILING"            // a part of the process fails for a reason without a code of its own
)

// KafkaSettings is how to reach Kafka, for every client that viewkeeper opens.
type KafkaSettings struct {
	// Brokers is host:port of at least one broker.
	Brokers []string
	// ClientID names this process to the brokers; "viewkeeper" when empty.
	ClientID string
}
