// Package history is a node's index of all decisions, on disk: filled from the
// decisions topic in the background, read by version, by name and by statement id.
//
// It is a copy and nothing else: it knows which topic of which cluster it was read
// from, and up to where. A directory of another topic, of another format, or one
// that does not read well is thrown away and filled anew.
//
// # Keys
//
//	m                     JSON of meta: format, cluster, topic, next offset, first version
//	d <version>           epoch (8 bytes), then the decision as JSON
//	i <id> 00 <version>   nothing; the versions decided under a statement id
//	n <name> 00 <version> nothing; the versions that changed a name, or would have
//
// A version is 8 bytes, big endian, so that keys sort as versions do. A version is
// decided once; of copies written by several owners the one of the highest epoch
// counts (DESIGN.md, rule 8). The next offset is written in one batch with what was
// read before it, so that a crash loses or repeats whole batches.
package history
