package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
)

// Conditions returns the conditions of the factory, ordered by type.
func (f *Factory) Conditions() []status.Condition {
	var all []status.Condition
	for _, c := range f.hub.Conditions() {
		all = append(all, f.explained(status.Condition(c)))
	}
	return all
}

// Condition returns one condition; its Status is empty for a type that there is none of.
func (f *Factory) Condition(t status.ConditionType) status.Condition {
	return f.explained(status.Condition(f.hub.Condition(t)))
}

// explained adds why it is not known which types there are, if that is the reason and the source of types
// says so.
func (f *Factory) explained(c status.Condition) status.Condition {
	source, ok := f.options.Types.(typesource.SourceError)
	if !ok || c.Reason != status.ReasonTypesUnknown {
		return c
	}
	if err := source.Err(); err != nil {
		c.Message += ": " + health.OneLine(err.Error())
	}
	return c
}
