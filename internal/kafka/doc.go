// Package kafka is the one place that knows how to speak to Kafka: the tuned
// client settings, the builders that goka takes, a catalog's topics and their
// checks, the emitter, and the supervisor that restarts what a lost broker ends.
//
// Every client of the project is made from [Settings]. TLS and SASL go into
// Settings.Sarama when they come, and touch nothing else.
//
// # Non-obvious
//
//   - Every builder makes its own config: goka's builders keep the pointer they
//     get, and write the client id into it.
//   - No request ever asks a broker to create a topic, not even by naming one in
//     a metadata request. [CreateTopics] is the only way that topics come about.
//   - goka puts errors into text ("%v"), so the chain ends there. What an error
//     was is asked from whoever saw it first: see [Guard].
//   - The emitter does not retry inside sarama, since a retry hides whether an
//     earlier attempt may have been written: see [Emitter].
//   - sarama's producer sends a flight in two requests, one after the other; the
//     owner's is in one: see [Flights].
//   - A view's consumers and topic managers are not closed by goka. [ViewClients]
//     keeps them and closes them.
package kafka
