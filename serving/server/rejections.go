package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/readapi"
)

// ReasonNotCached is the Status reason of requests for a type that crdcached does not cache. The code is
// 421, because controllers treat a 404 as a deleted object.
const ReasonNotCached metav1.StatusReason = "NotCached"

// errNotCached returns the error for a type that is not cached. The code is 503 before discovery is complete.
func (c *typeCache) errNotCached(gr schema.GroupResource) error {
	if !c.isDiscovered(gr) {
		return errUnavailable(
			"crdcached has not discovered yet whether it caches %s: retry, or use the API server", gr)
	}
	reason := "use the API server, or add the type to the config of crdcached"
	if problem := c.problemOf(gr); problem != nil {
		reason = fmt.Sprintf("%v; use the API server", problem)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMisdirectedRequest, Reason: ReasonNotCached,
		Details: &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource},
		Message: fmt.Sprintf("crdcached does not cache %s: %s", gr, reason),
	}}
}

// isDiscovered reports whether the types in the group of a type are known.
func (c *typeCache) isDiscovered(gr schema.GroupResource) bool {
	isInGroup := func(failure discovery.GroupFailure) bool { return failure.GroupVersion.Group == gr.Group }
	return c.binding.Reconciled() &&
		!slices.ContainsFunc(c.tracker.Snapshot().Catalog().FailedGroupVersions(), isInGroup)
}

func errReadOnly(gr schema.GroupResource, verb string) error {
	err := apierrors.NewMethodNotSupported(gr, verb)
	err.ErrStatus.Message += ": crdcached only reads; send the request to the API server"
	return err
}

func errUnavailable(format string, args ...any) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return err
}

type rejection struct {
	// unauthenticated is set if the credentials were rejected.
	unauthenticated atomic.Bool
	// reviewFailed is set if the API server did not answer a TokenReview or SubjectAccessReview.
	reviewFailed atomic.Bool
}

type rejectionKey struct{}

// rejectionFrom returns the rejection in ctx, or a new one.
func rejectionFrom(ctx context.Context) *rejection {
	if recordedRejection, ok := ctx.Value(rejectionKey{}).(*rejection); ok {
		return recordedRejection
	}
	return &rejection{}
}

type reportingAuthenticator struct{ authenticator.Request }

func (a reportingAuthenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.Request.AuthenticateRequest(r)
	if !ok || err != nil {
		recordedRejection := rejectionFrom(r.Context())
		recordedRejection.unauthenticated.Store(true)
		recordedRejection.reviewFailed.Store(isReviewFailure(err))
	}
	return response, ok, err
}

// isReviewFailure reports whether the API server did not answer a TokenReview. Other errors are about the
// credentials.
func isReviewFailure(err error) bool {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return slices.ContainsFunc(aggregate.Errors(), isReviewFailure)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch code := status.Status().Code; code {
		case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
			return true // crdcached may not create reviews, or is throttled
		default:
			return code >= http.StatusInternalServerError
		}
	}
	var urlErr *url.Error
	return errors.As(err, &urlErr) || errors.Is(err, context.DeadlineExceeded)
}

type reportingAuthorizer struct{ authorizer.Authorizer }

func (a reportingAuthorizer) Authorize(ctx context.Context,
	attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := a.Authorizer.Authorize(ctx, attributes)
	if err != nil && decision != authorizer.DecisionAllow {
		rejectionFrom(ctx).reviewFailed.Store(true)
	}
	return decision, reason, err
}

// explainRejections replaces the generic server's errors for requests that cannot be authenticated or
// authorized. The code is 503 if the API server did not answer, and otherwise 401 with a message of
// crdcached.
func explainRejections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recordedRejection := &rejection{}
		r = r.WithContext(context.WithValue(r.Context(), rejectionKey{}, recordedRejection))
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&explainingWriter{ResponseWriter: w,
			request: r, rejection: recordedRejection}), r)
	})
}

// explainingWriter replaces the error response of the handler.
type explainingWriter struct {
	http.ResponseWriter
	request       *http.Request
	rejection     *rejection
	errorReplaced bool
}

// Unwrap is for http.ResponseController.
func (w *explainingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *explainingWriter) WriteHeader(code int) {
	var err error
	switch {
	case w.rejection.reviewFailed.Load() && (code == http.StatusUnauthorized ||
		code == http.StatusInternalServerError):
		err = errUnavailable(
			"crdcached cannot check the user and the access rights: the API server does not answer; retry")
	case w.rejection.unauthenticated.Load() && code == http.StatusUnauthorized:
		err = apierrors.NewUnauthorized(
			"crdcached does not accept the credentials: send a token or a client certificate that the API server accepts, and check tokenAudiences in the config of crdcached")
	default:
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.errorReplaced = true
	w.Header().Del("Content-Length")
	readapi.WriteError(w.ResponseWriter, w.request, err)
}

func (w *explainingWriter) Write(data []byte) (int, error) {
	if w.errorReplaced {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}
