package faults

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

// Hang gives no answer until the client gives up.
func Hang() Effect {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
}

// Delay answers later.
func Delay(by time.Duration) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// Hold answers when until is closed.
func Hold(until <-chan struct{}) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-until:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// Status answers with this code, reason and message. Without a reason it is the one that a kube-apiserver has
// for the code.
func Status(code int, reason metav1.StatusReason, message string) Effect {
	if reason == "" {
		reason = apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0,
			false).ErrStatus.Reason
	}
	return answer(metav1.Status{Code: int32(code), Reason: reason, Message: message})
}

// Expired answers 410, to a watch as to a list: what is asked for is no longer known.
func Expired() Effect {
	return Status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// ExpiredEvent answers a watch with an event of that error, as a kube-apiserver does.
func ExpiredEvent() Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		status := complete(metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
			Message: "too old resource version"})
		// The client has gone when this fails: nobody is left to tell.
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": status})
	}
}

// Throttle answers 429, and asks the client to wait for so many seconds.
func Throttle(seconds int) Effect {
	return answer(metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "Too many requests, please try again later.",
		Details: &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)},
	})
}

// Header gives the answer of another effect a header, such as a Retry-After that is a date, or wrong.
func Header(name, value string, of Effect) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set(name, value)
		of(w, r, next)
	}
}

// Fail answers 500.
func Fail() Effect {
	return Status(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"Internal error occurred: it was injected")
}

func complete(s metav1.Status) metav1.Status {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Status = metav1.StatusFailure
	return s
}

func answer(s metav1.Status) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
		}
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(complete(s)) // the client has gone: nobody is left to tell
	}
}
