package registry

import "github.com/viewkeeper/viewkeeper"

// Stage is how far a definition came before it failed.
type Stage string

// The stages.
const (
	// StageParse: the row's text is not a CREATE statement that this program
	// reads, or the gate does not let its query through.
	StageParse Stage = "parse"
	// StageBuild: the planner cannot build the query, or something that it reads
	// is broken.
	StageBuild Stage = "build"
	// StageValidate: it would build, but breaks a rule: a cycle, a limit, a check
	// on materialized definitions, a name that the base took.
	StageValidate Stage = "validate"
)

// Failure says why a definition does not build here.
type Failure struct {
	Name  viewkeeper.Name
	Stage Stage
	// Code is the refusal code that a statement making this definition would get.
	Code viewkeeper.Code
	// Reason is a sentence for people.
	Reason string
	// Position is the place in the definition's own text, Definition.SQL, or nil.
	Position *viewkeeper.Position
	// RootCause is nil for a root cause, else the broken definition to blame.
	RootCause *viewkeeper.Name
	// Since is the catalog version at which it was first found broken here.
	Since viewkeeper.Version
}

// Broken gives the failure as a decision lists it.
func (f *Failure) Broken() viewkeeper.Broken {
	return viewkeeper.Broken{Name: f.Name, Reason: f.Reason, Position: f.Position, RootCause: f.RootCause}
}
