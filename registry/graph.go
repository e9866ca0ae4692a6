package registry

// graph is the persistent state: see DESIGN.md.
type graph struct{}
