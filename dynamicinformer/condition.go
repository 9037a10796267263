package dynamicinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/health"
)

// ConditionType names a condition of a factory.
type ConditionType = health.ConditionType

const (
	// ConditionReady is true when it is known which types there are and every required type is synced. A
	// type that is not required never keeps a factory from being ready.
	ConditionReady = health.ConditionReady
	// ConditionReachable is false while requests of some type get no answer: three in a row. The types keep
	// their state meanwhile, and are marked stale after half a minute; none is taken to be gone.
	ConditionReachable = health.ConditionReachable
	// ConditionAuthenticated is false while requests of some type are answered with 401.
	ConditionAuthenticated = health.ConditionAuthenticated
	// ConditionTypesKnown is true once Options.Types has told which types there are, and without it.
	ConditionTypesKnown = health.ConditionTypesKnown
)

// Condition is one thing that is true or not of a factory as a whole.
type Condition struct {
	Type ConditionType
	// Status is Unknown until something has been heard.
	Status metav1.ConditionStatus
	// Reason is why, for a machine; ReasonNone when all is well.
	Reason Reason
	// Message is why, for a person: one line.
	Message string
	// Since is when Status became what it is.
	Since time.Time
}

// Conditions returns the conditions of the factory, ordered by type.
func (f *Factory) Conditions() []Condition {
	var all []Condition
	for _, c := range f.hub.Conditions() {
		all = append(all, f.explained(Condition(c)))
	}
	return all
}

// Condition returns one condition; its Status is empty for a type that there is none of.
func (f *Factory) Condition(t ConditionType) Condition {
	return f.explained(Condition(f.hub.Condition(t)))
}

// explained adds why it is not known which types there are, if that is the reason and the source of types says so.
func (f *Factory) explained(c Condition) Condition {
	source, ok := f.options.Types.(TypeSourceErr)
	if !ok || c.Reason != ReasonTypesUnknown {
		return c
	}
	if err := source.Err(); err != nil {
		c.Message += ": " + health.OneLine(err.Error())
	}
	return c
}
