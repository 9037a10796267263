package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/crdcache/crdcache/readapi"
)

// ReasonNotCached is the Status reason of requests for a type that crdcached does not cache. The code is
// 421, because controllers treat a 404 as a deleted object.
const ReasonNotCached metav1.StatusReason = "NotCached"

// errNotCached returns the error for a type that is not cached. It is a 503 while the type may still turn
// out to be in the config.
func (c *typeCache) errNotCached(gr schema.GroupResource) error {
	if !c.isDiscovered(gr) {
		return errUnavailable(
			"crdcached has not discovered yet whether it caches %s: retry, or use the API server", gr)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMisdirectedRequest, Reason: ReasonNotCached,
		Details: &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource},
		Message: fmt.Sprintf("crdcached does not cache %s: use the API server, or add the type to the config of crdcached", gr),
	}}
}

// isDiscovered reports whether the discovery of the config's types is complete for the group of a type.
func (c *typeCache) isDiscovered(gr schema.GroupResource) bool {
	if !c.reconciler.Reconciled() {
		return false
	}
	for _, unknown := range c.tracker.Snapshot().Catalog().FailedGroupVersions() {
		if unknown.GroupVersion.Group == gr.Group {
			return false
		}
	}
	return true
}

// errReadOnly returns the error for a verb or subresource that writes.
func errReadOnly(gr schema.GroupResource, verb string) error {
	err := apierrors.NewMethodNotSupported(gr, verb)
	err.ErrStatus.Message += ": crdcached only reads; send the request to the API server"
	return err
}

func errUnavailable(format string, args ...any) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return err
}

type rejection struct {
	// unauthenticated is set if the credentials were rejected.
	unauthenticated atomic.Bool
	// reviewFailed is set if the API server did not answer a TokenReview or SubjectAccessReview.
	reviewFailed atomic.Bool
}

type rejectionKey struct{}

// rejectionFrom returns the rejection in ctx, or an unused one.
func rejectionFrom(ctx context.Context) *rejection {
	if recorded, ok := ctx.Value(rejectionKey{}).(*rejection); ok {
		return recorded
	}
	return &rejection{}
}

type reportingAuthenticator struct{ authenticator.Request }

func (a reportingAuthenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.Request.AuthenticateRequest(r)
	if !ok || err != nil {
		recorded := rejectionFrom(r.Context())
		recorded.unauthenticated.Store(true)
		recorded.reviewFailed.Store(isUnanswered(err))
	}
	return response, ok, err
}

// isUnanswered reports whether a TokenReview failed. Other errors are about the credentials.
func isUnanswered(err error) bool {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		for _, cause := range aggregate.Errors() {
			if isUnanswered(cause) {
				return true
			}
		}
		return false
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
	var unreached *url.Error
	return errors.As(err, &unreached) || errors.Is(err, context.DeadlineExceeded)
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
// authorized. It writes a 503 if the API server did not answer, and otherwise a 401 that names crdcached.
func explainRejections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := &rejection{}
		r = r.WithContext(context.WithValue(r.Context(), rejectionKey{}, recorded))
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&explainingWriter{ResponseWriter: w,
			request: r, rejection: recorded}), r)
	})
}

// explainingWriter replaces an error of the handler.
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
