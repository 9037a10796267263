package status

// Reason is the machine-readable cause of a State or Condition.
type Reason string

const (
	// ReasonNone accompanies each state that needs no cause.
	ReasonNone Reason = ""
	// ReasonForbidden: the server answered 403.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server answered 401. It concerns the whole factory: see ConditionAuthenticated.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotFound: the server answered 404: it does not serve the type.
	ReasonNotFound Reason = "NotFound"
	// ReasonVerbUnsupported: the server answered 405: the type does not support list.
	ReasonVerbUnsupported Reason = "VerbUnsupported"
	// ReasonPolled: the type supports list but not watch, or a proxy holds back its watches. The synced
	// informer lists it every 3 to 25 seconds.
	ReasonPolled Reason = "Polled"
	// ReasonRepeatedKeys: the server lists several objects with one namespace and name. The synced cache has
	// only one of them.
	ReasonRepeatedKeys Reason = "RepeatedKeys"
	// ReasonThrottled: the server answered 429.
	ReasonThrottled Reason = "Throttled"
	// ReasonConversionFailed: the webhook that converts the type's objects between versions fails.
	ReasonConversionFailed Reason = "ConversionFailed"
	// ReasonUnreachable: the connection to the server failed, for the whole factory: see ConditionReachable.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonNoAnswer: the server neither answers nor refuses requests.
	ReasonNoAnswer Reason = "NoAnswer"
	// ReasonWatchClosed: the server accepts watches and closes them immediately. The informer lists the
	// type from time to time instead.
	ReasonWatchClosed Reason = "WatchClosed"
	// ReasonNoEvents: the server accepts watches, and sends neither events nor the bookmarks that are due, or
	// a list shows that watches missed changes. The informer lists the type every 3 to 25 seconds.
	ReasonNoEvents Reason = "NoEvents"
	// ReasonPanicked: a function of the program panicked while it handled a list or watch. It relists.
	ReasonPanicked Reason = "Panicked"
	// ReasonRestored: the server was restored from an older backup. The cache has the lost state until
	// the informer has relisted the type.
	ReasonRestored Reason = "Restored"
	// ReasonTypesUnknown: the source of types has not reported its types yet.
	ReasonTypesUnknown Reason = "TypesUnknown"
	// ReasonGroupUnknown: the type may exist in an API group that could not be discovered. It keeps waiting.
	ReasonGroupUnknown Reason = "GroupUnknown"
	// ReasonNamespacesUnknown: each namespace has its own watch, and the namespaces are not known yet.
	ReasonNamespacesUnknown Reason = "NamespacesUnknown"
	// ReasonNotInstalled: the type does not exist.
	ReasonNotInstalled Reason = "NotInstalled"
	// ReasonNotEstablished: the CRD exists, and the server does not serve the type yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonVersionNotServed: the type exists, but not in this version.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonScopeConflict: the type is cluster-scoped and the factory is limited to namespaces.
	ReasonScopeConflict Reason = "ScopeConflict"
	// ReasonReplaced: the CRD was deleted and created again.
	ReasonReplaced Reason = "Replaced"
	// ReasonVersionChanged: an incarnation ended because the informer changes to another version of the
	// type. The objects continue to exist.
	ReasonVersionChanged Reason = "VersionChanged"
	// ReasonNotSelected: the selection of a subscription no longer matches the type.
	ReasonNotSelected Reason = "NotSelected"
	// ReasonStopped: the informer of a subscription stopped because the context of Start ended.
	ReasonStopped Reason = "Stopped"
	// ReasonRequestFailed: a list or watch request failed in another way.
	ReasonRequestFailed Reason = "RequestFailed"
)

// permanent reports whether waiting is unlikely to help.
func (r Reason) permanent() bool {
	switch r {
	case ReasonForbidden, ReasonUnauthorized, ReasonVerbUnsupported, ReasonScopeConflict:
		return true
	}
	return r.Absent()
}

// Absent reports whether the reason means that the type does not exist.
func (r Reason) Absent() bool {
	return r == ReasonNotFound || r == ReasonNotInstalled || r == ReasonVersionNotServed
}
