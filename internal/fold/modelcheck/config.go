package modelcheck

// Config bounds what is explored. All that it allows is tried, in every order.
type Config struct {
	// Owners is how many take-overs there are. Each owner may stop at any step, for
	// ever or until it goes on, while others take over: nothing keeps two apart but
	// the log.
	Owners int
	// Commits is how many commit rows are written in all, Batches what one may hold:
	// "+a" creates or replaces a, "-a" drops it, "." is a refusal; "+a-b" is two
	// statements. Any owner may decide any of them of the same offsets.
	Commits int
	Batches []string
	// Script, if there is one, says for each commit row what Batches says for all.
	Script [][]string
	// Purges is how often an owner may purge what can be. Expiries is how often what was
	// purged, and compacted, is removed.
	Purges, Expiries int
	// Compactions is how often the log is compacted, each time up to any offset.
	Compactions int
	// Follower lets a node read, record by record, that asks for the end when it has
	// to and gets the answer when it may. What followers from nothing see is looked
	// at in every state anyway.
	Follower bool
	// Strangers is how many tombstones others write, on any of the keys Strange:
	// "#commit", "main.a", and "#fence" for any owner's fence.
	Strangers int
	Strange   []string
	// IDs gives every statement an id.
	IDs bool
	// Swift lets an owner write its fence as soon as the table is recovered, where
	// there would else be room for others.
	Swift bool
	// AnyOrder lets the records of a flight reach the table in any order, instead of
	// theirs, as a producer's.
	AnyOrder bool
	// Without are the rules that are taken out.
	Without Rules
	// Most is how many states are explored at most, 0 for all.
	Most int
}

// Rules names rules, or parts of them, that can be taken out to see what they are for.
type Rules uint64

// What can be taken out.
const (
	// Rule1Fence: the owner does not read the table up to its fence, but goes on
	// from what it had recovered.
	Rule1Fence Rules = 1 << iota
	// Rule1Stop: an owner that sees a later fence goes on.
	Rule1Stop
	// Rule1Lost: an owner whose fence is lost goes on.
	Rule1Lost
	// Rule2Counting: what a former owner wrote late counts.
	Rule2Counting
	// Rule3Rows: the rows and ids of the last commit row are not written again.
	Rule3Rows
	// Rule3Decisions: nor its decisions.
	Rule3Decisions
	// Rule4Offset: judging goes on from the committed offset.
	Rule4Offset
	// Rule4First: the decisions of a catalog's first commit row do not wait until that
	// is read back.
	Rule4First
	// Rule4Content: a commit row's rows count only when they come as records.
	Rule4Content
	// Rule4Held: a row above the commit row's version is shown at once.
	Rule4Held
	// Rule5Finish: answers are given on the acks.
	Rule5Finish
	// Rule6Heal: nothing is healed.
	Rule6Heal
	// Rule6Named: names in a stale commit row are not healed.
	Rule6Named
	// Rule6ReadBack: the owner heals before it has read its own records back.
	Rule6ReadBack
	// Rule6Lag: compaction takes the good record under a stale one.
	Rule6Lag
	// Rule7Collect: a follower shows what it has after a gap.
	Rule7Collect
	// Rule7Again: an end asked for before a further gap counts.
	Rule7Again
	// Rule8Epoch: of two decisions about one offset the later one in the topic counts.
	Rule8Epoch
	// Rule8Commit: decisions come from the topic only.
	Rule8Commit
	// Rule9Through: the commit row does not say what was purged.
	Rule9Through
	// Rule9First: the purge goes out before the commit row that says so.
	Rule9First
	// Rule9Epoch: a former owner's purge counts: what it lies on is gone.
	Rule9Epoch
	// Rule9Resume: an owner that waited between recovering the table and its fence does
	// not know that it did.
	Rule9Resume
	// CommitFirst: the commit row goes out in one flight with its rows, which may
	// come before it.
	CommitFirst
)

func (r Rules) has(rule Rules) bool { return r&rule != 0 }
