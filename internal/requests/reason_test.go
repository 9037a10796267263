package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverError returns client-go's error for a response with this code and no usable body.
func serverError(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"},
		"", "", 0, true)
}

// conversionError returns the API server's error for a failing conversion webhook.
func conversionError(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code,
		Message: `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hook.default.svc:443/convert?timeout=30s": no endpoints available`,
	}}
}

var errRefused = &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
	Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
}}

func TestReasonOf(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	tests := []struct {
		name string
		err  error
		want Reason
	}{
		{"success", nil, ReasonNone},
		{"expired", apierrors.NewResourceExpired("too old"), ReasonNone},
		{"410 without a body", serverError(410), ReasonNone},
		{"a version from the future", tooLarge, ReasonNone},
		{"another timeout", apierrors.NewTimeoutError("slow", 1), ReasonRequestFailed},
		{"401", serverError(401), ReasonUnauthorized},
		{"403", serverError(403), ReasonForbidden},
		{"404", serverError(404), ReasonNotFound},
		{"405", serverError(405), ReasonVerbUnsupported},
		{"429", serverError(429), ReasonThrottled},
		{"400", serverError(400), ReasonRequestFailed},
		{"422", serverError(422), ReasonRequestFailed},
		{"500", serverError(500), ReasonRequestFailed},
		{"503", serverError(503), ReasonRequestFailed},
		{"wrapped 403", fmt.Errorf("list: %w", serverError(403)), ReasonForbidden},
		{"wrapped 410", fmt.Errorf("watch: %w", apierrors.NewResourceExpired("too old")), ReasonNone},
		{"connection refused", errRefused, ReasonUnreachable},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, ReasonUnreachable},
		{"deadline", context.DeadlineExceeded, ReasonUnreachable},
		{"broken off", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), ReasonUnreachable},
		{"an answer that cannot be read", errors.New("cannot decode"), ReasonRequestFailed},
		{"conversion", conversionError(500), ReasonConversionFailed},
		{"conversion, for the server's cache", conversionError(429), ReasonConversionFailed},
		{"conversion, in the words of a client error", conversionError(400), ReasonRequestFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReasonOf(tt.err); got != tt.want {
				t.Errorf("ReasonOf(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}
