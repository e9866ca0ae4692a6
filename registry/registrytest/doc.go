// Package registrytest holds what the planners of this system are tested with:
//
//   - [TestPlanner], the conformance suite that every planner passes, in its own
//     process or behind a socket;
//   - [Model], a small planner in plain Go. It knows a subset of the dialect, and
//     that subset exactly, so that it serves as an oracle beside the real engine and
//     lets tests and examples of the law run without one;
//   - [FaultPlanner], which fails at the n-th call;
//   - [Large], the statements of a large installation.
//
// The verdict scripts under testdata/cases and the random comparison of the judge
// with real views are this package's own tests.
package registrytest
