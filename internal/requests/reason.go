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

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// errWatchClosed is the failure of watches that are closed immediately without an event.
var errWatchClosed = errors.New("the server accepts watches and closes them at once")

// errNoBookmarks is the failure of watches that receive neither events nor the bookmarks that are due.
var errNoBookmarks = errors.New("the server accepts watches and sends neither events nor bookmarks, so changes may be missed: look for a proxy that holds back events; if the server sends no bookmarks, set WatchBookmarks to false")

// errMissedEvents is the failure of silent watches that have missed changes which a list shows.
var errMissedEvents = errors.New("the server accepts watches and sends no events, although a list shows changes: look for a proxy that holds back events")

// errPanicked is the failure of a list or watch after a panic in its handling.
var errPanicked = errors.New("a function of the program panicked")

// EndsWatches reports whether a failure with this reason ends each watch soon after the server has accepted
// it. Only a watch that stays open disproves such a failure.
func EndsWatches(r status.Reason) bool {
	return r == status.ReasonWatchClosed || r == status.ReasonPanicked
}

// NeedsEvent reports whether only an event or bookmark of a watch disproves a failure with this reason.
func NeedsEvent(r status.Reason) bool { return r == status.ReasonNoEvents }

// AffectsFactory reports whether the reason concerns all types of a factory rather than one.
func AffectsFactory(r status.Reason) bool {
	return r == status.ReasonUnauthorized || r == status.ReasonUnreachable
}

// Explain returns a message for a reason without an error. It returns "" for other reasons.
func Explain(r status.Reason) string {
	switch r {
	case status.ReasonTypesUnknown:
		return "waiting to learn which types the server has"
	case status.ReasonGroupUnknown:
		return "the type's API group could not be discovered"
	case status.ReasonNotInstalled:
		return "the server has no such type"
	case status.ReasonNotEstablished:
		return "the type's CustomResourceDefinition is not established yet"
	case status.ReasonVersionNotServed:
		return "the server does not serve this version of the type"
	case status.ReasonScopeConflict:
		return "the type is cluster-scoped and cannot be read in one namespace"
	case status.ReasonVerbUnsupported:
		return "the type cannot be listed"
	case status.ReasonReplaced:
		return "the type's CustomResourceDefinition was replaced by another one"
	case status.ReasonThrottled:
		return "the server asks for fewer requests"
	case status.ReasonNoAnswer:
		return "the server does not answer"
	}
	return ""
}

// ReasonOf classifies the error of a list, a watch request, or a broken watch. Responses that are part of the
// protocol and cause a relist (410, a resource version from the future) are not failures.
func ReasonOf(err error) status.Reason {
	switch {
	case err == nil, err == errPollDue, RelistReasonOf(err) == status.RelistExpired,
		RelistReasonOf(err) == status.RelistTooLarge:
		return status.ReasonNone
	case errors.Is(err, errWatchClosed):
		return status.ReasonWatchClosed
	case errors.Is(err, errPanicked):
		return status.ReasonPanicked
	case errors.Is(err, errNoBookmarks), errors.Is(err, errMissedEvents):
		return status.ReasonNoEvents
	case RelistReasonOf(err) == status.RelistRestored:
		return status.ReasonRestored
	case errors.Is(err, errNoAnswer):
		return status.ReasonNoAnswer
	case apierrors.IsForbidden(err):
		return status.ReasonForbidden
	case apierrors.IsUnauthorized(err):
		return status.ReasonUnauthorized
	case apierrors.IsNotFound(err):
		return status.ReasonNotFound
	case apierrors.IsMethodNotSupported(err):
		return status.ReasonVerbUnsupported
	}
	var answer apierrors.APIStatus
	switch {
	case !errors.As(err, &answer):
		if isUnreachable(err) {
			return status.ReasonUnreachable
		}
		return status.ReasonRequestFailed
	case isConversionFailure(answer.Status()):
		return status.ReasonConversionFailed
	case apierrors.IsTooManyRequests(err):
		return status.ReasonThrottled
	}
	return status.ReasonRequestFailed
}

// isUnreachable reports whether an error without a response is a network error, rather than a decoding error.
func isUnreachable(err error) bool {
	var sent *url.Error
	var network net.Error
	return errors.As(err, &sent) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isConnectionFailure reports whether a request failed with its connection before response headers arrived.
func isConnectionFailure(err error) bool {
	var sent *url.Error
	var network *net.OpError
	return errors.Is(err, errNoAnswer) || errors.As(err, &sent) &&
		(errors.As(err, &network) || isConnectionError(err))
}

// isConversionFailure reports whether a conversion webhook failed. The API server has no reason code for it.
// It responds with 500 and the webhook's error, or with 429 if its watch cache cannot be filled.
func isConversionFailure(s metav1.Status) bool {
	return (s.Code >= http.StatusInternalServerError || s.Code == http.StatusTooManyRequests) &&
		strings.Contains(s.Message, "conversion webhook for ")
}

// RelistReasonOf classifies the error that caused a relist. It is empty for the next list of a polled type.
func RelistReasonOf(err error) status.RelistReason {
	var restored *restoredFromBackupError
	switch {
	case err == errPollDue:
		return ""
	case errors.As(err, &restored):
		return status.RelistRestored
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return status.RelistExpired
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return status.RelistTooLarge
	}
	return status.RelistFailed
}
