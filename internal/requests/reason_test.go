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

	"github.com/crdcache/crdcache/dynamicinformer/status"
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
		want status.Reason
	}{
		{"success", nil, status.ReasonNone},
		{"expired", apierrors.NewResourceExpired("too old"), status.ReasonNone},
		{"410 without a body", serverError(410), status.ReasonNone},
		{"a version from the future", tooLarge, status.ReasonNone},
		{"another timeout", apierrors.NewTimeoutError("slow", 1), status.ReasonRequestFailed},
		{"401", serverError(401), status.ReasonUnauthorized},
		{"403", serverError(403), status.ReasonForbidden},
		{"404", serverError(404), status.ReasonNotFound},
		{"405", serverError(405), status.ReasonVerbUnsupported},
		{"429", serverError(429), status.ReasonThrottled},
		{"400", serverError(400), status.ReasonRequestFailed},
		{"422", serverError(422), status.ReasonRequestFailed},
		{"500", serverError(500), status.ReasonRequestFailed},
		{"503", serverError(503), status.ReasonRequestFailed},
		{"wrapped 403", fmt.Errorf("list: %w", serverError(403)), status.ReasonForbidden},
		{"wrapped 410", fmt.Errorf("watch: %w", apierrors.NewResourceExpired("too old")), status.ReasonNone},
		{"connection refused", errRefused, status.ReasonUnreachable},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, status.ReasonUnreachable},
		{"deadline", context.DeadlineExceeded, status.ReasonUnreachable},
		{"broken off", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), status.ReasonUnreachable},
		{"an answer that cannot be read", errors.New("cannot decode"), status.ReasonRequestFailed},
		{"conversion", conversionError(500), status.ReasonConversionFailed},
		{"conversion, for the server's cache", conversionError(429), status.ReasonConversionFailed},
		{"conversion, in the words of a client error", conversionError(400), status.ReasonRequestFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReasonOf(tt.err); got != tt.want {
				t.Errorf("ReasonOf(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}
