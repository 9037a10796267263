package requests

// Verb is a kind of request.
type Verb string

// The verbs of requests.
const (
	VerbList      Verb = "list"
	VerbListMore  Verb = "list-more" // a further page of a list
	VerbWatch     Verb = "watch"
	VerbWatchList Verb = "watch-list" // a watch that begins with a list
)

// Watches reports whether the request is a watch.
func (v Verb) Watches() bool { return v == VerbWatch || v == VerbWatchList }

// String returns the verb that users know.
func (v Verb) String() string {
	if v == VerbListMore {
		return string(VerbList)
	}
	return string(v)
}
