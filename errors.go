package viewkeeper

import (
	"errors"
	"fmt"
)

// Code says in one stable word why a statement was refused, or what a warning
// is about. docs/codes.md has a page for each.
type Code string

// The codes of a refusal, in the order of docs/codes.md.
const (
	CodeSyntax      Code = "SYNTAX"
	CodeName        Code = "NAME"
	CodeOption      Code = "OPTION"
	CodeTooLarge    Code = "TOO_LARGE"
	CodeKeyMismatch Code = "KEY_MISMATCH"
	CodeIDReused    Code = "ID_REUSED"

	CodeExists          Code = "EXISTS"
	CodeNotFound        Code = "NOT_FOUND"
	CodeWrongKind       Code = "WRONG_KIND"
	CodeStaleVersion    Code = "STALE_VERSION"
	CodeDuplicateTarget Code = "DUPLICATE_TARGET"

	CodeNotOneQuery Code = "NOT_ONE_QUERY"
	CodeNotAllowed  Code = "NOT_ALLOWED"
	CodeVolatile    Code = "VOLATILE"
	CodeBind        Code = "BIND"
	CodeCycle       Code = "CYCLE"
	CodeComplexity  Code = "COMPLEXITY"

	CodePlaceholder  Code = "PLACEHOLDER"
	CodeMergeSchema  Code = "MERGE_SCHEMA"
	CodeCountQuery   Code = "COUNT_QUERY"
	CodeTimeColumn   Code = "TIME_COLUMN"
	CodeSortOrder    Code = "SORT_ORDER"
	CodeUpdateGroup  Code = "UPDATE_GROUP"
	CodePolicy       Code = "POLICY"
	CodeMergeAlgebra Code = "MERGE_ALGEBRA"

	CodeBreaksDependents Code = "BREAKS_DEPENDENTS"
	CodeRenameInexact    Code = "RENAME_INEXACT"

	CodeEngineKilled  Code = "ENGINE_KILLED"
	CodeEngineTimeout Code = "ENGINE_TIMEOUT"

	// CodeInternal says that viewkeeper itself failed on the statement, which
	// changed nothing: a mistake of the program, to be reported with the statement.
	CodeInternal Code = "INTERNAL"
)

// The codes of warnings. A warning refuses nothing.
const (
	WarnExistingDiffers Code = "EXISTING_DIFFERS"
	WarnUnnamedColumn   Code = "UNNAMED_COLUMN"
	WarnDuplicateColumn Code = "DUPLICATE_COLUMN"
	WarnUnusedCTE       Code = "UNUSED_CTE"
	WarnColumnsShift    Code = "COLUMNS_SHIFT"
	WarnCommonColumn    Code = "COMMON_COLUMN"
	WarnAliasCaptured   Code = "ALIAS_CAPTURED"
	WarnNameCaptured    Code = "NAME_CAPTURED"
	WarnOuterColumn     Code = "OUTER_COLUMN"
)

// Error is a refusal's reason as an error value: what happened, to which object,
// where, and what to do next. It is an outcome for the person who submitted the
// statement, never a fault of the pipeline.
type Error struct {
	Code Code
	// Message says what is wrong and the way out, in one sentence or two.
	Message string
	// Name is the object, when there is one.
	Name Name
	// Offset is the place in bytes from 0 of the text that the caller passed in,
	// or -1 when there is none. The caller maps it outwards.
	Offset int
}

// Error gives the message with its code in front.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an Error without a place.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Offset: -1}
}

// ErrorAt makes an Error at a byte offset.
func ErrorAt(offset int, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Offset: offset}
}

// CodeOf gives the code of the first Error in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
