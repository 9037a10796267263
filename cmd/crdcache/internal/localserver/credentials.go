package localserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// pluginAccount returns the account of the credentials from the config's exec plugin. Renewed credentials
// have the same account. known is false if the API server did not report the account. Then a hash of the
// token replaces it. client-go runs the plugin once per process and config, and again when the credentials
// expire.
func pluginAccount(ctx context.Context, config *rest.Config) (account string, known bool, err error) {
	token, subject, err := pluginCredentials(config)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("get credentials from %s: %w", config.ExecProvider.Command, err)
	case token == "":
		return "certificate of " + subject, true, nil
	}
	if account, ok := jwtAccount(token); ok {
		return account + subject, true, nil
	}
	if account, err = reviewAccount(ctx, config); err == nil {
		return account, true, nil
	}
	// A server without SelfSubjectReviews never reports the account. A renewed token then counts as
	// another account.
	known = apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || errors.Is(err, errNoUserName)
	return fmt.Sprintf("token %x", sha256.Sum256([]byte(token))), known, nil
}

var errNoUserName = errors.New("the SelfSubjectReview has no user name")

// pluginCredentials returns the token and the subject of the client certificate that client-go would send, or
// "".
func pluginCredentials(config *rest.Config) (token, subject string, err error) {
	pluginConfig := rest.AnonymousClientConfig(config)
	pluginConfig.ExecProvider = config.ExecProvider
	transportConfig, err := pluginConfig.TransportConfig()
	if err != nil {
		return "", "", err
	}
	if holder := transportConfig.TLS.GetCertHolder; holder != nil {
		certificate, err := holder.GetCert()
		if err != nil {
			return "", "", err
		}
		if certificate != nil && certificate.Leaf != nil {
			subject = certificate.Leaf.Issuer.String() + " " + certificate.Leaf.Subject.String()
		}
	}
	var captureToken roundTripper = func(r *http.Request) (*http.Response, error) {
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	authenticated, err := transport.HTTPWrappersForConfig(transportConfig, captureToken)
	if err != nil {
		return "", "", err
	}
	r, err := http.NewRequest(http.MethodGet, "https://account", nil)
	if err == nil {
		_, err = authenticated.RoundTrip(r)
	}
	return token, subject, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func jwtAccount(token string) (string, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer  string          `json:"iss"`
		Subject string          `json:"sub"`
		Groups  json.RawMessage `json:"groups"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer == "" || claims.Subject == "" {
		return "", false
	}
	return fmt.Sprintf("subject %q of %q in %s", claims.Subject, claims.Issuer, claims.Groups), true
}

// reviewAccount returns the user that the API server derives from the credentials.
func reviewAccount(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1",
		"kind": "SelfSubjectReview"}}
	reviews := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1",
		Resource: "selfsubjectreviews"}
	answer, err := client.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	user, _, _ := unstructured.NestedMap(answer.Object, "status", "userInfo") // nil if it is null
	if user["username"] == nil {
		err = errNoUserName
	}
	return fmt.Sprintf("user %v, uid %v, groups %v", user["username"], user["uid"], user["groups"]), err
}
