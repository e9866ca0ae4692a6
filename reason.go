package viewkeeper

// reason is a reason's code with what a person does about it.
type reason struct{ code, advice string }

// reasonList has every code of status.go once; a test says when one is missing.
func reasonList() []reason {
	return []reason{
		{ReasonStarting, "wait; it takes seconds"},
		{ReasonCatchingUp, "wait until the table is read"},
		{ReasonBuilding, "wait until the first factory is built"},
		{ReasonKafkaAway, "look at the brokers and the network; it reconnects by itself, do not restart it"},
		{ReasonKafkaDenied, "give the process's user the right; it goes on by itself within seconds"},
		{ReasonNodeIDTaken, "give each process a --node-id of its own"},
		{ReasonStale, "see to the reason beside it; it becomes ready again by itself"},
		{ReasonTopicMissing, "before the first start run viewkeeper topics create; later find out who deleted the topic, and restore"},
		{ReasonTopicSettings, "correct the topic's settings with Kafka's tools; they are looked at every minute"},
		{ReasonTopicRecreated, "the table: viewkeeper restore; the definitions topic: viewkeeper topics adopt"},
		{ReasonTableBehind, "stop the owners and put the table back with viewkeeper restore"},
		{ReasonTableTruncated, "correct the topic's cleanup.policy, make the table anew and put it back with viewkeeper restore"},
		{ReasonTableDamaged, "put the table back with viewkeeper restore; without arguments it says what each source would give"},
		{ReasonStatementsLost, "correct the topic's cleanup.policy, compare with what was sent, and send again what is missing"},
		{ReasonNoOwner, "start an owner; look at the log and /readyz of those that run"},
		{ReasonNoOwnerAtEnd, "start an owner: its first record is a new end"},
		{ReasonBaseDiffers, "give all processes the same --base"},
		{ReasonDigestDiffers, "keep both nodes' status and logs, restart them one after the other, and report it"},
		{ReasonEngineDown, "nothing if it passes within seconds; else look at the log for why the engine ends: memory, or a base that does not run"},
		{ReasonBuildFailed, "it is tried again by itself; look at the error"},
		{ReasonBroken, "viewkeeper failures shows which and why"},
		{ReasonOwnerless, "compare the definitions with an export"},
		{ReasonUnknownRecords, "upgrade this process"},
		{ReasonDataDir, "make room in --data-dir and see that it can be written; it goes on by itself"},
		{ReasonCopyFailed, "make room in --data-dir, and give each process a directory of its own; it goes on by itself"},
		{ReasonFailing, "look at the error; it is tried again by itself"},
	}
}

// Reasons gives the code of every reason there is.
func Reasons() []string {
	var codes []string
	for _, r := range reasonList() {
		codes = append(codes, r.code)
	}
	return codes
}

// Advice says in a few words what to do about a reason, "" for a code that is none.
func Advice(code string) string {
	for _, r := range reasonList() {
		if r.code == code {
			return r.advice
		}
	}
	return ""
}
