package readapi

import (
	"encoding/base64"
	"encoding/json"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// token is the content of a continue token in the format of a kube-apiserver.
type token struct {
	APIVersion string `json:"v"`
	// Version is the resource version of the list, or latest.
	Version int64 `json:"rv"`
	// Start is "/", the key of the last object relative to the namespace of the list, and a zero byte.
	Start string `json:"start"`
}

const (
	tokenVersion = "meta.k8s.io/v1"
	// continueFromLatest continues an expired list with the latest state.
	continueFromLatest = -1
)

// newContinueToken returns the token that continues a list after the object with the key. The namespace is
// empty for a list of all namespaces.
func newContinueToken(version int64, namespace, key string) string {
	key = strings.TrimPrefix(key, prefixOf(namespace))
	data, _ := json.Marshal(token{tokenVersion, version, "/" + key + "\x00"}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParseContinueToken returns the resource version of the list, and the key at which the list continues. A
// negative version means the latest state.
func ParseContinueToken(text, namespace string) (version int64, start string, err error) {
	invalid := func(detail string) error {
		return apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + detail)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", invalid(err.Error())
	}
	var t token
	if err := json.Unmarshal(data, &t); err != nil {
		return 0, "", invalid(err.Error())
	}
	switch {
	case t.APIVersion != tokenVersion:
		return 0, "", invalid("server does not recognize this encoded version " + t.APIVersion)
	case t.Version == 0:
		return 0, "", invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return 0, "", invalid("encoded start key empty (version meta.k8s.io/v1)")
	}
	key := "/" + strings.TrimPrefix(t.Start, "/")
	if path.Clean(key) != key {
		return 0, "", invalid(t.Start)
	}
	return t.Version, prefixOf(namespace) + key[1:], nil
}

func prefixOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}
