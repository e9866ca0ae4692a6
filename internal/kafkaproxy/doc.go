// Package kafkaproxy stands between a client and its Kafka brokers, for tests: it
// cuts, goes silent, and stops single requests and answers.
//
// It listens at an address of its own for every broker, and writes that address into
// each answer that names one, so that a client that begins at [Proxy.Brokers] stays
// here. A proxy for one process makes a partition of that process alone.
//
// It works frame by frame. What it must understand it decodes with kmsg; a request or
// an answer that kmsg does not know goes through as it came. Connections are plain:
// no TLS, and no SASL that sends bytes without a frame.
//
// # What each fault is to a client
//
//   - Cut: the process, or the machine's network card, is gone. Every call fails at once.
//   - Silence: a cable was pulled. Nothing fails and nothing comes; only a deadline helps.
//   - Refuse: a request that certainly was not carried out.
//   - LoseAnswer: one that certainly was, and nobody knows.
//   - Hold: one that may be carried out long after its sender gave it up: at Heal it is
//     forwarded, also when the client has gone meanwhile.
package kafkaproxy
