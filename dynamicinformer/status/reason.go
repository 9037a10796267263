package status

import "github.com/crdcache/crdcache/internal/requests"

// Reason is the machine-readable cause of a State or Condition.
type Reason = requests.Reason

const (
	// ReasonNone accompanies each state that needs no cause.
	ReasonNone = requests.ReasonNone
	// ReasonForbidden: the server answered 403.
	ReasonForbidden = requests.ReasonForbidden
	// ReasonUnauthorized: the server answered 401. It concerns the whole factory: see
	// ConditionAuthenticated.
	ReasonUnauthorized = requests.ReasonUnauthorized
	// ReasonNotFound: the server answered 404: it does not serve the type.
	ReasonNotFound = requests.ReasonNotFound
	// ReasonVerbUnsupported: the server answered 405: the type does not support list or watch.
	ReasonVerbUnsupported = requests.ReasonVerbUnsupported
	// ReasonThrottled: the server answered 429.
	ReasonThrottled = requests.ReasonThrottled
	// ReasonConversionFailed: the webhook that converts the type's objects between versions fails.
	ReasonConversionFailed = requests.ReasonConversionFailed
	// ReasonUnreachable: the connection to the server failed. It concerns the whole factory: see
	// ConditionReachable.
	ReasonUnreachable = requests.ReasonUnreachable
	// ReasonNoAnswer: the server neither answers nor refuses requests.
	ReasonNoAnswer = requests.ReasonNoAnswer
	// ReasonWatchClosed: the server accepts watches and closes them immediately. The informer lists the
	// type from time to time instead.
	ReasonWatchClosed = requests.ReasonWatchClosed
	// ReasonPanicked: a function of the program panicked while it handled a list or watch. The informer
	// relists the type.
	ReasonPanicked = requests.ReasonPanicked
	// ReasonRestored: the server was restored from an older backup. The cache has the lost state until
	// the informer has relisted the type.
	ReasonRestored = requests.ReasonRestored
	// ReasonTypesUnknown: the source of types has not reported its types yet.
	ReasonTypesUnknown = requests.ReasonTypesUnknown
	// ReasonGroupUnknown: the type may exist in an API group that could not be discovered. The informer
	// keeps waiting.
	ReasonGroupUnknown = requests.ReasonGroupUnknown
	// ReasonNamespacesUnknown: each namespace has its own watch, and the namespaces are not known yet.
	ReasonNamespacesUnknown = requests.ReasonNamespacesUnknown
	// ReasonNotInstalled: the type does not exist.
	ReasonNotInstalled = requests.ReasonNotInstalled
	// ReasonNotEstablished: the CRD exists, and the server does not serve the type yet.
	ReasonNotEstablished = requests.ReasonNotEstablished
	// ReasonVersionNotServed: the type exists, but not in this version.
	ReasonVersionNotServed = requests.ReasonVersionNotServed
	// ReasonScopeConflict: the type is cluster-scoped and the factory is limited to namespaces.
	ReasonScopeConflict = requests.ReasonScopeConflict
	// ReasonReplaced: the CRD was deleted and created again.
	ReasonReplaced = requests.ReasonReplaced
	// ReasonVersionChanged: a generation ended because the informer changes to another version of the
	// type. The objects continue to exist.
	ReasonVersionChanged = requests.ReasonVersionChanged
	// ReasonNotSelected: the selection of a subscription no longer matches the type.
	ReasonNotSelected = requests.ReasonNotSelected
	// ReasonStopped: the informer of a subscription stopped because the context of Start ended.
	ReasonStopped = requests.ReasonStopped
	// ReasonRequestFailed: a list or watch request failed in another way.
	ReasonRequestFailed = requests.ReasonRequestFailed
)
