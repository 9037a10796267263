package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// The output formats of verbs that print reports rather than objects.
const (
	FormatText  = "text"
	FormatTable = "table"
	FormatWide  = "wide"
	FormatName  = "name"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
)

// RunE returns the function of a command that completes and runs a verb.
func RunE(complete func(*cobra.Command, []string) error,
	run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := complete(cmd, args); err != nil {
			return err
		}
		return run(cmd.Context())
	}
}

// DetailsAnnotation is the annotation of a command with the part of its description that only the reference
// prints and --help omits.
const DetailsAnnotation = "crdcache/details"

// ErrDifferencesFound ends a comparison with exit code 1. Nothing is printed for it.
var ErrDifferencesFound = errors.New("there are differences")

// ErrInterrupted ends a command after a signal.
var ErrInterrupted = errors.New("interrupted")

// ComparisonError is the failure of a comparison, whose exit code 1 means differences.
type ComparisonError struct{ Cause error }

func (e *ComparisonError) Error() string { return e.Cause.Error() }

func (e *ComparisonError) Unwrap() error { return e.Cause }

// UnknownGroups returns an error if there are groups that could not be discovered.
func UnknownGroups(name string, groups []discovery.GroupFailure) error {
	if len(groups) == 0 {
		return nil
	}
	return &UnknownGroupsError{Name: name, Groups: groups}
}

// MatchesName reports whether name can mean a type with these versions and names.
func MatchesName(name discovery.Name, group string, versions, names []string) bool {
	return slices.ContainsFunc(name.Interpretations,
		func(r discovery.Interpretation) bool { return r.Matches(group, versions, names) })
}

// EventTypes are the types of events, which two groups serve.
var EventTypes = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}

// IsEvents reports whether a type is events, which expire after an hour and are not part of the state of a
// cluster.
func IsEvents(gr schema.GroupResource) bool { return slices.Contains(EventTypes, gr) }

// UniqueName appends a number to a used name.
func UniqueName(name string, usedNames map[string]bool) string {
	candidate := name
	for n := 2; usedNames[candidate]; n++ {
		candidate = fmt.Sprintf("%s%d", name, n)
	}
	usedNames[candidate] = true
	return candidate
}

// WriteStructured writes a record as JSON or YAML.
func WriteStructured(out io.Writer, format string, record any) error {
	if format == FormatYAML {
		text, err := print.MarshalYAML(record)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(record)
}

// maxAbbreviated bounds the names in an error.
const maxAbbreviated = 10

// Abbreviate joins the first names and counts the others.
func Abbreviate(names []string) string { return abbreviate(names, maxAbbreviated) }

func abbreviate(names []string, atMost int) string {
	if len(names) > atMost {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:atMost], ", "), len(names)-atMost)
	}
	return strings.Join(names, ", ")
}

// NoArgs is the Args function of verbs without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q: '%s' takes no arguments", args[0], cmd.CommandPath())
	}
	return nil
}
