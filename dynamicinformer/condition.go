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

// Condition returns one condition. Its Status is empty if there is no condition of the type.
func (f *Factory) Condition(t status.ConditionType) status.Condition {
	return f.explained(status.Condition(f.hub.Condition(t)))
}

// explained adds the error of the type source to a condition with ReasonTypesUnknown.
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
