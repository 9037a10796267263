package dynamicinformer

import "github.com/crdcache/crdcache/internal/requests"

// Reason is the machine-readable cause of a State.
type Reason = requests.Reason

const (
	// ReasonNone goes with every state that needs no cause.
	ReasonNone = requests.ReasonNone
	// ReasonForbidden: the server answered 403.
	ReasonForbidden = requests.ReasonForbidden
	// ReasonUnauthorized: the server answered 401. It is a matter of the whole factory: see
	// ConditionAuthenticated.
	ReasonUnauthorized = requests.ReasonUnauthorized
	// ReasonNotFound: the server answered 404: it does not serve the type.
	ReasonNotFound = requests.ReasonNotFound
	// ReasonVerbUnsupported: the server answered 405: the type cannot be listed or watched.
	ReasonVerbUnsupported = requests.ReasonVerbUnsupported
	// ReasonThrottled: the server answered 429.
	ReasonThrottled = requests.ReasonThrottled
	// ReasonConversionFailed: the webhook that converts the type's objects between versions fails.
	ReasonConversionFailed = requests.ReasonConversionFailed
	// ReasonUnreachable: no connection to the server, or it broke. It is a matter of the whole factory:
	// see ConditionReachable.
	ReasonUnreachable = requests.ReasonUnreachable
	// ReasonNoAnswer: requests are sent and neither answered nor refused.
	ReasonNoAnswer = requests.ReasonNoAnswer
	// ReasonWatchClosed: the server accepts watches and closes them at once, again and again. The type is listed now and
	// then instead.
	ReasonWatchClosed = requests.ReasonWatchClosed
	// ReasonPanicked: a function of the program panicked while a list or watch was handled. The type is listed again.
	ReasonPanicked = requests.ReasonPanicked
	// ReasonRestored: the server was restored from an older backup. The cache shows what is lost until the type has been
	// listed again.
	ReasonRestored = requests.ReasonRestored
	// ReasonTypesUnknown: the source of types has not said yet which there are.
	ReasonTypesUnknown = requests.ReasonTypesUnknown
	// ReasonGroupUnknown: the type may exist in an API group that could not be discovered. Waiting goes on.
	ReasonGroupUnknown = requests.ReasonGroupUnknown
	// ReasonNamespacesUnknown: each namespace is read by itself, and the server has not said yet which exist.
	ReasonNamespacesUnknown = requests.ReasonNamespacesUnknown
	// ReasonNotInstalled: there is no such type.
	ReasonNotInstalled = requests.ReasonNotInstalled
	// ReasonNotEstablished: the type's CRD is there and the server does not serve it yet.
	ReasonNotEstablished = requests.ReasonNotEstablished
	// ReasonVersionNotServed: the type exists, without this version.
	ReasonVersionNotServed = requests.ReasonVersionNotServed
	// ReasonScopeConflict: the type is cluster-scoped and the factory is limited to a namespace.
	ReasonScopeConflict = requests.ReasonScopeConflict
	// ReasonReplaced: the type's CRD is another one than before.
	ReasonReplaced = requests.ReasonReplaced
	// ReasonVersionChanged: a generation ended because another version of the type takes over; its objects live
	// on.
	ReasonVersionChanged = requests.ReasonVersionChanged
	// ReasonNotSelected: a Subscription's Selection no longer has the type.
	ReasonNotSelected = requests.ReasonNotSelected
	// ReasonStopped: a Subscription's informer was stopped with the context of Start, and says nothing about its type any
	// more.
	ReasonStopped = requests.ReasonStopped
	// ReasonRequestFailed: any other failure of a list or watch request.
	ReasonRequestFailed = requests.ReasonRequestFailed
)
