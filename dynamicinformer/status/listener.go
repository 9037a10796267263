package status

// Listener observes the informers of a factory, for metrics, logs and alerts. Pass it to New in
// Options.Listener, or to Factory.AddListener at any time. Nil functions are not called.
//
// The functions of a listener are called in order, one at a time, without locks. They may call the factory,
// but must not wait for its Shutdown. Each listener has its own unbounded queue, so a slow one delays no
// other component. A panic ends the process; with utilruntime.ReallyCrash off, the call is skipped.
//
// A new listener first receives the current state: StateChanged with a zero Status as before,
// IncarnationStarted and IncarnationSynced for each informer, and ConditionChanged for each condition.
type Listener struct {
	// StateChanged is called when the state, reason, incarnation, Stale, Terminating or Shard of an
	// informer's status changes.
	StateChanged func(before, after Status)
	// IncarnationStarted is called when an informer begins to watch its type.
	IncarnationStarted func(g Incarnation)
	// IncarnationSynced is called when the first list of an incarnation is in the cache.
	IncarnationSynced func(g Incarnation)
	// IncarnationEnded is called when an informer no longer watches its type. reason is the reason why the
	// type is gone, ReasonVersionChanged if another version replaces this one, or ReasonNone if the informer
	// stopped.
	IncarnationEnded func(g Incarnation, reason Reason)
	// Relisted is called when an informer relists its type.
	Relisted func(g Incarnation, reason RelistReason)
	// RequestFailed is called for every failed list or watch. Answers that are part of the protocol (410, a
	// resource version from the future) are not failures; Relisted reports them.
	RequestFailed func(f RequestFailure)
	// ConditionChanged is called when the Status of a condition of the factory changes.
	ConditionChanged func(before, after Condition)
}
