package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/serving/readapi"
)

// Paths of reviews. Clients create a review to query their identity or rights. Nothing is stored.
const (
	accessReviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	userReviewPath   = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	maxReviewBytes   = 64 << 10
)

func isReview(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == accessReviewPath || r.URL.Path == userReviewPath)
}

// reviewHandler answers SelfSubjectAccessReview and SelfSubjectReview.
type reviewHandler struct {
	cache      *typeCache
	authorizer authorizer.UnconditionalAuthorizer
	codecs     serializer.CodecFactory
}

func (rv *reviewHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, gv, err := rv.review(r)
	if err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	responsewriters.WriteObjectNegotiated(rv.codecs, negotiation.DefaultEndpointRestrictions, gv, w, r,
		http.StatusCreated, answer, false)
}

func (rv *reviewHandler) review(r *http.Request) (review runtime.Object, gv schema.GroupVersion, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, gv, apierrors.NewBadRequest(fmt.Sprintf("read the review: %v", err))
	}
	kind := authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview")
	if r.URL.Path == userReviewPath {
		kind = authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview")
	}
	object, _, err := rv.codecs.UniversalDeserializer().Decode(body, &kind, nil)
	if err != nil {
		return nil, gv, apierrors.NewBadRequest(fmt.Sprintf("decode the review: %v", err))
	}
	identity, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return nil, gv, apierrors.NewInternalError(fmt.Errorf("the request is not authenticated"))
	}
	switch review := object.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status, err = rv.reviewAccess(r.Context(), identity, review.Spec)
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = userInfo(identity)
	default:
		err = apierrors.NewBadRequest(fmt.Sprintf("%T is not a review for %s", object, r.URL.Path))
	}
	return object, kind.GroupVersion(), err
}

// reviewAccess reports whether crdcached serves a request and the user is allowed to send it. It ignores the
// selectors of the review, so the answer is about all objects.
func (rv *reviewHandler) reviewAccess(ctx context.Context, identity user.Info,
	spec authorizationv1.SelfSubjectAccessReviewSpec) (
	status authorizationv1.SubjectAccessReviewStatus, err error) {
	attributes := authorizer.AttributesRecord{User: identity}
	switch resourceAttributes, pathAttributes := spec.ResourceAttributes, spec.NonResourceAttributes; {
	case (resourceAttributes == nil) == (pathAttributes == nil):
		return status, apierrors.NewBadRequest("specify exactly one of resourceAttributes and nonResourceAttributes")
	case resourceAttributes != nil:
		gr := schema.GroupResource{Group: resourceAttributes.Group, Resource: resourceAttributes.Resource}
		attributes = authorizer.AttributesRecord{
			User: identity, ResourceRequest: true, Verb: resourceAttributes.Verb,
			Namespace: resourceAttributes.Namespace, APIGroup: resourceAttributes.Group,
			APIVersion: resourceAttributes.Version,
			Resource:   resourceAttributes.Resource, Subresource: resourceAttributes.Subresource,
			Name: resourceAttributes.Name,
		}
		if _, cached := rv.cache.cachedVersion(gr); !cached {
			status.Reason = fmt.Sprintf("crdcached does not cache %s: use the API server", gr)
		}
	default:
		attributes.Path, attributes.Verb = pathAttributes.Path, pathAttributes.Verb
	}
	if !slices.Contains([]string{"get", "list", "watch"}, attributes.Verb) {
		status.Reason = "crdcached only reads: use the API server"
	}
	if status.Reason != "" {
		return status, nil
	}
	decision, reason, err := rv.authorizer.Authorize(ctx, attributes)
	status.Allowed, status.Reason = decision == authorizer.DecisionAllow, reason
	if err != nil && !status.Allowed {
		return status, apierrors.NewInternalError(err)
	}
	return status, nil
}

func userInfo(identity user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: identity.GetName(), UID: identity.GetUID(),
		Groups: identity.GetGroups()}
	for name, values := range identity.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[name] = values
	}
	return info
}
