// Package check holds the alerting rules beside it to Prometheus' own parser and engine,
// and to the metrics that there are. It is a module of its own: nothing that viewkeeper
// is made of has to be of the versions that Prometheus asks for. promtool, which does the
// same and reads the same files, takes several minutes to build, with the client
// libraries of every cloud.
package check
