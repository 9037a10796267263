package readapi

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func statusOf(err error) metav1.Status {
	var apiStatus apierrors.APIStatus
	var status metav1.Status
	if errors.As(err, &apiStatus) {
		status = apiStatus.Status()
	} else {
		status = apierrors.NewInternalError(err).Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

// NewStatusError returns an error with an HTTP status code. An error without reason has the form of a
// kube-apiserver's unexpected errors.
func NewStatusError(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}

// errNoSuchResource is the error in groups with built-in types. In other groups a kube-apiserver answers with
// plain text.
func errNoSuchResource() error {
	status := statusOf(apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{},
		"", "", 0, true))
	status.Details = &metav1.StatusDetails{}
	return &apierrors.StatusError{ErrStatus: status}
}

func errMethodNotAllowed() error {
	err := NewStatusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errInternal is the form of a kube-apiserver's unexpected errors.
func errInternal(message string) error {
	return NewStatusError(http.StatusInternalServerError, "", message)
}

func errNotAcceptable(served string) error {
	return NewStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+served)
}

// errTooOld is the error of a watch that starts before floor, where the history begins.
func errTooOld(version, floor uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, floor))
}

// NewResourceVersionTooLargeError returns the error of a kube-apiserver for a resource version that it has
// not reached.
func NewResourceVersionTooLargeError(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d",
		version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// errContinueTooOld is the error of an expired list. The token rest continues the list with the latest
// state.
func errContinueTooOld(rest string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, modified, " +
		"or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.Continue = rest
	return err
}

func errUnserved(gr schema.GroupResource, subresource string) error {
	return NewStatusError(http.StatusNotImplemented, "NotImplemented",
		fmt.Sprintf("the subresource %s of %s is not served here: use a real kube-apiserver for that, such as envtest's",
			subresource, gr))
}
