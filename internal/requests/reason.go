package requests

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is the machine-readable cause of a State.
type Reason string

const (
	// ReasonNone goes with every state that needs no cause.
	ReasonNone Reason = ""
	// ReasonForbidden: the server answered 403.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server answered 401. It is a matter of the whole factory: see
	// ConditionAuthenticated.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotFound: the server answered 404: it does not serve the type.
	ReasonNotFound Reason = "NotFound"
	// ReasonVerbUnsupported: the server answered 405: the type cannot be listed or watched.
	ReasonVerbUnsupported Reason = "VerbUnsupported"
	// ReasonThrottled: the server answered 429.
	ReasonThrottled Reason = "Throttled"
	// ReasonConversionFailed: the webhook that converts the type's objects between versions fails.
	ReasonConversionFailed Reason = "ConversionFailed"
	// ReasonUnreachable: no connection to the server, or it broke. It is a matter of the whole factory:
	// see ConditionReachable.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonNoAnswer: requests are sent and neither answered nor refused.
	ReasonNoAnswer Reason = "NoAnswer"
	// ReasonWatchClosed: the server accepts watches and closes them at once, again and again. The type is
	// listed now and then instead.
	ReasonWatchClosed Reason = "WatchClosed"
	// ReasonPanicked: a function of the program panicked while a list or watch was handled. The type is
	// listed again.
	ReasonPanicked Reason = "Panicked"
	// ReasonRestored: the server was restored from an older backup. The cache shows what is lost until the
	// type has been listed again.
	ReasonRestored Reason = "Restored"
	// ReasonTypesUnknown: the source of types has not said yet which there are.
	ReasonTypesUnknown Reason = "TypesUnknown"
	// ReasonGroupUnknown: the type may exist in an API group that could not be discovered.
	ReasonGroupUnknown Reason = "GroupUnknown"
	// ReasonNamespacesUnknown: each namespace is read by itself, and the server has not said yet which exist.
	ReasonNamespacesUnknown Reason = "NamespacesUnknown"
	// ReasonNotInstalled: there is no such type.
	ReasonNotInstalled Reason = "NotInstalled"
	// ReasonNotEstablished: the type's CRD is there and the server does not serve it yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonVersionNotServed: the type exists, without this version.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonScopeConflict: the type is cluster-scoped and the factory is limited to a namespace.
	ReasonScopeConflict Reason = "ScopeConflict"
	// ReasonReplaced: the type's CRD is another one than before.
	ReasonReplaced Reason = "Replaced"
	// ReasonVersionChanged: a generation ended because another version of the type takes over; its objects
	// live on.
	ReasonVersionChanged Reason = "VersionChanged"
	// ReasonNotSelected: a Subscription's Selection no longer has the type.
	ReasonNotSelected Reason = "NotSelected"
	// ReasonStopped: what followed the type was stopped, and says nothing about it any more.
	ReasonStopped Reason = "Stopped"
	// ReasonRequestFailed: any other failure of a list or watch request.
	ReasonRequestFailed Reason = "RequestFailed"
)

// errWatchClosed is what is wrong with watches that are closed at once and have brought nothing.
var errWatchClosed = errors.New("the server accepts watches and closes them at once")

// errPanicked is what is wrong when a list or watch could not be handled.
var errPanicked = errors.New("a function of the program panicked")

// EndsWatches reports whether the reason ends each watch soon after it was accepted. Such a trouble is over
// when a watch has lasted.
func EndsWatches(r Reason) bool { return r == ReasonWatchClosed || r == ReasonPanicked }

// Settles reports whether trying on is not expected to help, so that nobody should wait for it.
func Settles(r Reason) bool {
	switch r {
	case ReasonForbidden, ReasonUnauthorized, ReasonVerbUnsupported, ReasonScopeConflict:
		return true
	}
	return Absent(r)
}

// Absent reports whether the reason is that there is no such type, which a program that requires the type
// waits out.
func Absent(r Reason) bool {
	return r == ReasonNotFound || r == ReasonNotInstalled || r == ReasonVersionNotServed
}

// OfFactory reports whether the reason says nothing about the type: all types have it alike.
func OfFactory(r Reason) bool { return r == ReasonUnauthorized || r == ReasonUnreachable }

// Explain says what a reason that no error comes with means, for a person.
func Explain(r Reason) string {
	switch r {
	case ReasonTypesUnknown:
		return "waiting to learn which types the server has"
	case ReasonGroupUnknown:
		return "the type's API group could not be discovered"
	case ReasonNotInstalled:
		return "the server has no such type"
	case ReasonNotEstablished:
		return "the type's CustomResourceDefinition is not established yet"
	case ReasonVersionNotServed:
		return "the server does not serve this version of the type"
	case ReasonScopeConflict:
		return "the type is cluster-scoped and cannot be read in one namespace"
	case ReasonVerbUnsupported:
		return "the type cannot be listed and watched"
	case ReasonReplaced:
		return "the type's CustomResourceDefinition was replaced by another one"
	case ReasonThrottled:
		return "the server asks for fewer requests"
	case ReasonNoAnswer:
		return "the server does not answer"
	}
	return ""
}

// ReasonOf classifies the error of a list or watch request, or of a watch that broke off. Answers that are
// part of the protocol and lead to a relist (410, a resource version from the future) are no failures.
func ReasonOf(err error) Reason {
	switch {
	case err == nil, RelistReasonOf(err) == RelistExpired, RelistReasonOf(err) == RelistTooLarge:
		return ReasonNone
	case errors.Is(err, errWatchClosed):
		return ReasonWatchClosed
	case errors.Is(err, errPanicked):
		return ReasonPanicked
	case RelistReasonOf(err) == RelistRestored:
		return ReasonRestored
	case errors.Is(err, errNoAnswer):
		return ReasonNoAnswer
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case apierrors.IsUnauthorized(err):
		return ReasonUnauthorized
	case apierrors.IsNotFound(err):
		return ReasonNotFound
	case apierrors.IsMethodNotSupported(err):
		return ReasonVerbUnsupported
	}
	var answer apierrors.APIStatus
	switch {
	case !errors.As(err, &answer):
		if unreachable(err) {
			return ReasonUnreachable
		}
		return ReasonRequestFailed
	case conversionFailed(answer.Status()):
		return ReasonConversionFailed
	case apierrors.IsTooManyRequests(err):
		return ReasonThrottled
	}
	return ReasonRequestFailed
}

// unreachable reports whether an error that is no answer of the server is one of the way to it, and not of
// what was made of its answer.
func unreachable(err error) bool {
	var sent *url.Error
	var network net.Error
	return errors.As(err, &sent) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// connectionFailed reports whether a request failed because its connection did, before response headers came:
// the server hardly worked for it.
func connectionFailed(err error) bool {
	var sent *url.Error
	var network *net.OpError
	return errors.Is(err, errNoAnswer) || errors.As(err, &sent) &&
		(errors.As(err, &network) || unanswered(err))
}

// conversionFailed reports whether an answer is that of a conversion webhook in trouble. The API server has
// no reason of its own for it: it answers 500 with the converter's words, or, while that keeps its cache from
// being filled, 429 with the same words at the end.
func conversionFailed(s metav1.Status) bool {
	return (s.Code >= http.StatusInternalServerError || s.Code == http.StatusTooManyRequests) &&
		strings.Contains(s.Message, "conversion webhook for ")
}

// RelistReason says why a type was listed again.
type RelistReason string

const (
	// RelistExpired: the server no longer has the history since the resource version that was reached (410).
	RelistExpired RelistReason = "Expired"
	// RelistTooLarge: the server has not reached the resource version that was asked for.
	RelistTooLarge RelistReason = "TooLarge"
	// RelistRestored: the server was restored from an older backup.
	RelistRestored RelistReason = "Restored"
	// RelistFailed: a request failed, or a watch broke off, in any other way.
	RelistFailed RelistReason = "Failed"
)

// RelistReasonOf classifies the error that a type is listed again after.
func RelistReasonOf(err error) RelistReason {
	var restored *restoredError
	switch {
	case errors.As(err, &restored):
		return RelistRestored
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return RelistExpired
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return RelistTooLarge
	}
	return RelistFailed
}
