package registry

// scratch is one holder's view of the planner's scratch catalog.
type scratch struct{}
