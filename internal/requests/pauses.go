package requests

import "time"

// pauses are the pauses after repeated failures: at least the first, twice as long each time, and never
// longer than the last. spread is how much of a pause is left to chance, so that types and programs do not
// come back all at once.
type pauses struct {
	first, last time.Duration
	spread      float64
}

// after returns the pause after this many earlier ones. chance is random in [0, 1).
func (p pauses) after(earlier int, chance float64) time.Duration {
	d := p.last
	if earlier < 16 {
		d = min(p.first<<earlier, p.last)
	}
	// The longest that chance may add stays within last.
	d = min(d, time.Duration(float64(p.last)/(1+p.spread)))
	return d + time.Duration(float64(d)*p.spread*chance)
}

var (
	// A server that cannot be reached is not harmed by requests: client-go repeats them each second. Here,
	// all types of a factory take turns.
	connectionPause = pauses{500 * time.Millisecond, time.Second, 1}
	// ordinaryPause is like that of client-go, which goes up to a minute, and begins anew every two.
	ordinaryPause = pauses{800 * time.Millisecond, 30 * time.Second, 1}
	// What lists again and again, although lists succeed, costs the server most.
	relistPause = pauses{800 * time.Millisecond, time.Minute, 1}
	// A lagging API server catches up soon, or there is something wrong with it.
	laggingPause = pauses{250 * time.Millisecond, 5 * time.Second, 0.25}
	absentPause  = pauses{5 * time.Second, time.Minute, 1}
	// A right is granted by a person.
	forbiddenPause = pauses{time.Minute, 5 * time.Minute, 0.25}
	// A webhook that fails is not helped by being asked more often.
	conversionPause = pauses{time.Second, time.Minute, 1}
)

const (
	// laggingFor is how long a type that is served may be answered with 404 before that stops being taken for
	// the lag of one API server.
	laggingFor = 30 * time.Second
	// grantingFor is how long a type that is forbidden is asked for as if that would pass: rights are often
	// installed together with what needs them, and arrive a moment later.
	grantingFor = 2 * time.Minute
	// connectionWakes is how often a type goes on because the server has answered another one, and fails
	// again, before that is taken for a trouble of its own.
	connectionWakes = 3
)

// policy is what is known of a target from elsewhere.
type policy struct {
	// known says that a source of types says that the type is served: a 404 is then that of an API server
	// that lags behind, and will pass.
	known bool
	// late says that the requests are for a namespace that has just come: rights in it may come a moment
	// later.
	late bool
}

// stage is which pauses apply.
type stage int

const (
	ordinary stage = iota
	lagging
	absent
	forbidden
	conversion
	// connection is for failures that concern all types of a factory alike: they take turns.
	connection
)

// pauses returns the pauses for a reason that has been failing for a time.
func (p policy) pauses(reason Reason, failing time.Duration) (stage, pauses) {
	switch {
	case reason == ReasonNotFound && p.known && failing < laggingFor,
		reason == ReasonForbidden && p.late && failing < laggingFor:
		return lagging, laggingPause
	case reason == ReasonNotFound && p.known:
		return absent, absentPause
	case reason == ReasonForbidden && failing >= grantingFor:
		return forbidden, forbiddenPause
	case reason == ReasonConversionFailed:
		return conversion, conversionPause
	}
	return ordinary, ordinaryPause
}
