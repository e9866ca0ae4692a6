// Package server is a node's HTTP door: statements in, decisions and the catalog
// out, queries with streamed results.
//
// It declares what it needs of the rest as small interfaces ([Node], [Engine],
// [Emitter], [Checker]) and imports none of its siblings, so that it is tested
// without Kafka and without an engine. A request's path: [Server.Handler] routes
// it, one file an endpoint answers it, problem.go words what went wrong.
//
// The contract is in docs/http.md. What is not obvious:
//
//   - Every answer carries Viewkeeper-Version and Viewkeeper-Node. For a query the
//     version is that of the factory which answered it.
//   - The author of a statement is what the producer says: the X-Author header,
//     else the user name of basic authentication. Nothing is verified here.
//   - A statement without an id gets a random one before it is written, so that an
//     answer lost on the way can always be asked for again.
//   - An error in the middle of a streamed body aborts the connection. The client
//     sees a cut, never a short answer that looks whole.
package server
