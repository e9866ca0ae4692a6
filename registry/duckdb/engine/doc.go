// Package engine runs DuckDB in a child process of the same binary, so that no
// SQL can take down, hang or blow up the process that talks to Kafka (the keeper).
//
// [StartPlanner] and [StartServer] give what duckdb.Open and duckdb.OpenServer give
// in process. Behind each is one child, watched from its start to its end:
//
//	keeper                                engine
//	Planner, Server   one call a conn     Main: serves calls on the listener that it
//	   supervisor     ───────────────►    inherited, until its life pipe ends
//	      watchdog    reads resident size every 20 ms
//
// It is killed when its resident memory is over the limit, when a call outlasts its
// deadline, and when a cancelled call does not end; another is started at once. The
// call that was under way gives a [registry.LostError] that says how the engine
// ended. A child ends with its keeper, however that dies.
//
// Programs that start an engine have this at the beginning of main, and tests in
// TestMain:
//
//	if engine.IsChild() {
//		os.Exit(engine.Main())
//	}
package engine
