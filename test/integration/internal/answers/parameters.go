package answers

import (
	"net/http"
	"strings"
)

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// latestToken continues after edge/dns with the current objects.
const latestToken = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2VkZ2UvZG5zXHUwMDAwIn0"

// listParameters returns all combinations of the version and paging parameters of lists.
func listParameters() (questions []Question) {
	combinations(
		[]string{"resourceVersion", "resourceVersionMatch", "limit", "continue", "sendInitialEvents"},
		[][]string{
			{"", "0", "NOW", "abc", "-1", "00", "18446744073709551616"}, {"", "Exact", "NotOlderThan", "Foo"},
			{"", "2", "-1"}, {"", "TOKEN", latestToken, "abc"}, {"", "true", "false"},
		},
		func(pairs []string) {
			questions = append(questions, Question{http.MethodGet, groupPath + "workloads?" + query(pairs...),
				"application/json"})
		})
	return questions
}

// watchParameters returns all combinations of the parameters that select the start of a watch.
func watchParameters() (questions []Question) {
	combinations(
		[]string{"watch", "timeoutSeconds", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
			"allowWatchBookmarks", "limit", "continue"},
		[][]string{
			{"true"}, {"1"}, {"", "0", "NOW", "abc", "-1", "00"}, {"", "Exact", "NotOlderThan", "Foo"},
			{"", "true", "false", "x"}, {"", "true"}, {"", "2"}, {"", "TOKEN"},
		},
		func(pairs []string) {
			questions = append(questions, Question{http.MethodGet, groupPath + "environments?" + query(pairs...),
				"application/json"})
		})
	return questions
}

// acceptHeaders requests many media types. It omits protobuf, which readapi never serves and a kube-apiserver
// uses for errors, and watches of PartialObjectMetadataList, which are empty there.
func acceptHeaders() (questions []Question) {
	const meta = ";g=meta.k8s.io"
	accepts := []string{
		"", "*/*", "application/*", "text/*", "text/html", "text/plain", "garbage", "APPLICATION/JSON",
		"application/json", "application/yaml", "application/cbor",
		"application/json;q=0", "application/json;q=x", "application/json;q=0.5,application/yaml",
		", application/json", "application/json;;", "application/json;charset=utf-8",
		"application/json;stream=watch", "application/json;pretty=1", "application/json;profile=nominal",
		"application/json;v=v1",
		"application/json;as=Table", "application/json;as=Table;v=v2" +
			meta, "application/json;as=Table;v=v1;g=foo", "application/json;as=Status;v=v1;g=",
		asTable, "application/json;as=Table;v=v1beta1" + meta, "application/yaml;as=Table;v=v1" + meta,
		asTable + ",application/json;as=Table;v=v1beta1" + meta +
			",application/json", "application/json;as=Foo;v=v1" + meta + ",application/json",
		asPartial, "application/json;as=PartialObjectMetadata;v=v1beta1" +
			meta, "application/yaml;as=PartialObjectMetadata;v=v1" +
			meta, "*/*;as=PartialObjectMetadata;v=v1" + meta,
		asPartialList, "application/json;as=PartialObjectMetadataList;v=v1beta1" +
			meta, "application/yaml;as=PartialObjectMetadataList;v=v1" + meta,
	}
	paths := []string{
		groupPath + "environments", groupPath + "environments?limit=-1", groupPath + "environments?limit=abc", groupPath +
			"environments?includeObject=x",
		groupPath + "environments/production-eu", groupPath + "environments/none", groupPath +
			"environments/production-eu/status", groupPath + "nope",
		groupPath + "environments?watch=true&timeoutSeconds=1", groupPath +
			"environments?watch=true&resourceVersion=abc", groupPath +
			"environments?watch=true&fieldSelector=x%3Dy",
		"/apis/" + Group, "/apis/nope", "/api/v2", "/api/v1/nope", "/nope", "/healthz",
	}
	for _, accept := range accepts {
		for _, path := range paths {
			if !strings.Contains(path, "&timeoutSeconds") || !strings.Contains(accept, "MetadataList") {
				questions = append(questions, Question{http.MethodGet, path, accept})
			}
		}
	}
	return questions
}

// methods returns requests with unusual methods. A kube-apiserver answers any method in most of discovery;
// readapi does not.
func methods() (questions []Question) {
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodTrace, "FOO"} {
		for _, path := range []string{"", "/production-eu", "/none", "?limit=abc"} {
			questions = append(questions, Question{method, groupPath + "environments" + path, "application/json"})
		}
		questions = append(questions, Question{method, "/nope", ""}, Question{method, groupPath + "nope", ""},
			Question{method, "/healthz", ""})
	}
	for _, method := range []string{http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, "FOO"} {
		for _, path := range []string{"/version", "/api", "/api/v1"} {
			questions = append(questions, Question{method, path, "application/json"})
		}
	}
	return questions
}
