package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names a condition of a factory.
type ConditionType string

const (
	// ConditionReady is true when the types are known and every required type is synced. Other types do
	// not affect it.
	ConditionReady ConditionType = "Ready"
	// ConditionReachable is false after three consecutive requests of a type got no answer. The types keep
	// their states, and become stale after 30 seconds; none is considered deleted.
	ConditionReachable ConditionType = "Reachable"
	// ConditionAuthenticated is false while the server answers requests of a type with 401.
	ConditionAuthenticated ConditionType = "Authenticated"
	// ConditionTypesKnown is true once Options.Types has reported its types, and always without
	// Options.Types.
	ConditionTypesKnown ConditionType = "TypesKnown"
)

// Condition is an observation about a whole factory.
type Condition struct {
	Type ConditionType
	// Status is Unknown until the first observation.
	Status metav1.ConditionStatus
	// Reason is the machine-readable cause; ReasonNone when all is well.
	Reason Reason
	// Message is the cause in one line of text.
	Message string
	// Since is the time of the last change of Status.
	Since time.Time
}
