package testcluster

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Drop closes the connection without an answer.
func Drop() Effect {
	return func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
}

// Hang never answers: it blocks until the client gives up.
func Hang() Effect {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
}

// Delay delays the answer.
func Delay(by time.Duration) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		serveAfter(time.After(by), w, r, next)
	}
}

// Hold delays the answer until a channel is closed.
func Hold(until <-chan struct{}) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) { serveAfter(until, w, r, next) }
}

func serveAfter[T any](event <-chan T, w http.ResponseWriter, r *http.Request, next http.Handler) {
	select {
	case <-event:
		next.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}

// Status answers with a Status. An empty reason means the default reason of the code.
func Status(code int, reason metav1.StatusReason, message string) Effect {
	if reason == "" {
		reason = apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0,
			false).ErrStatus.Reason
	}
	return statusEffect(metav1.Status{Code: int32(code), Reason: reason, Message: message})
}

// Expired answers a list or a watch with 410 Expired.
func Expired() Effect {
	return Status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// ExpiredEvent answers a watch with an ERROR event of 410 Expired, as a kube-apiserver does.
func ExpiredEvent() Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		status := completeStatus(metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
			Message: "too old resource version"})
		// the only error is that the client has disconnected
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": status})
	}
}

// Header adds a header to the answer of another effect, such as an invalid Retry-After.
func Header(name, value string, effect Effect) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set(name, value)
		effect(w, r, next)
	}
}

// Fail answers with 500.
func Fail() Effect {
	return Status(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"Internal error occurred: it was injected")
}

func completeStatus(s metav1.Status) metav1.Status {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Status = metav1.StatusFailure
	return s
}

func statusEffect(s metav1.Status) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
		}
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(completeStatus(s)) // the only error is that the client has disconnected
	}
}
