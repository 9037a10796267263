package answers

import (
	"net/http"
	"net/url"
	"strings"
)

// labelSelectors returns valid and invalid label selectors.
func labelSelectors() (questions []Question) {
	selectors := []string{
		"a", "!a", "a=b", "a==b", "a!=b", "a in (b)", "a in (b,c)", "a notin (b,c)", "a in ()", "a in (",
		"a in (b", "a in b", "a in (b,,c)", "a notin", "a>1", "a<1", "a>x", "a>=1",
		"a=b,c=d", "a=b,", ",a", "a b", "a=b c", "=", "a=", "a=,b=", "!", "!a=b", "a=-", "-a=b", "a/b/c=d",
		"a=" + strings.Repeat("y", 64), "ä=b", "a=ä", "()", "in", "in in (in)", "a=='b'", "   ", "a = b",
		"a\t=\nb", "a=\x00",
		"demo.crdcache.dev/team", "!demo.crdcache.dev/team", "demo.crdcache.dev/team=cards",
		"demo.crdcache.dev/team!=cards", "demo.crdcache.dev/team in (cards, shop)",
		"demo.crdcache.dev/team notin (cards)",
	}
	for _, selector := range selectors {
		for _, how := range []string{"workloads?", "workloads?limit=2&",
			"workloads?watch=true&timeoutSeconds=1&"} {
			questions = append(questions, Question{http.MethodGet, groupPath + how + "labelSelector=" +
				url.QueryEscape(selector), "application/json"})
		}
	}
	return questions
}

// fieldSelectors returns valid and invalid field selectors, also for types with additional fields.
func fieldSelectors() (questions []Question) {
	selectors := []string{
		"a", "a=b", ",", "=", "=x", "metadata.name", "metadata.name=", "metadata.name=dns",
		"metadata.name==dns", "metadata.name!=dns", "metadata.name=dns,", " metadata.name=dns",
		"metadata.name= dns", "metadata.name>a", "metadata.name in (dns)",
		`metadata.name=d\ns`, `metadata.name=d\,s`, `metadata.name=d\`, "metadata.name=a=b",
		"metadata.name=a/b", "metadata.name=.", "metadata.name=%", "metadata.name=dns,metadata.name=dns",
		"metadata.name=dns,spec.nope=x",
		"metadata.namespace=edge", "metadata.namespace!=edge", "metadata.name=dns,metadata.namespace=edge",
		"metadata.uid=x", "metadata.labels.x=y", "kind=Workload",
		"spec.tier", "spec.tier=", "spec.tier=critical", "spec.tier!=critical", ".spec.tier=critical",
		"spec.tier=critical,spec.tier=x", "spec.replicas=3", "spec.replicas=03", "spec.paused=True",
	}
	for _, selector := range selectors {
		for _, how := range []string{"workloads?", "namespaces/edge/workloads?limit=1&",
			"environments?limit=1&", "workloads?limit=1&", "workloads?watch=true&timeoutSeconds=1&"} {
			questions = append(questions, Question{http.MethodGet, groupPath + how + "fieldSelector=" +
				url.QueryEscape(selector), "application/json"})
		}
	}
	return questions
}

// parameterValues returns invalid and repeated parameters. It omits errors that name Go types of the server.
func parameterValues() (questions []Question) {
	parameters := []string{
		"watch=false&watch=true", "watch=0", "limit=", "limit=1&limit=2", "limit=99999999999999999999",
		"limit=1.5", "limit=+1", "limit=0", "timeoutSeconds=1.5", "timeoutSeconds=99999999999999999999",
		"resourceVersion=", "resourceVersion=%20", "resourceVersion=+1", "resourceVersion=0x1",
		"resourceVersion=1e3", "resourceVersion=9223372036854775808", "resourceVersion=0&limit=3",
		"resourceVersion=0&limit=3&fieldSelector=metadata.name%3Ddns",
		"resourceVersionMatch=Exact&resourceVersion=NOW&limit=2&fieldSelector=spec.tier%3Dcritical",
		"resourceVersionMatch=exact&resourceVersion=NOW",
		"allowWatchBookmarks=x", "sendInitialEvents=", "foo=bar", "pretty=true", "fieldManager=x",
		"dryRun=All", "a;b", "labelSelector=a&labelSelector=b",
		"fieldSelector=metadata.name=dns&fieldSelector=metadata.name=x",
		"continue=%00", "continue=e30",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIvZWRnZS9kbnMifQ",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiIn0",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoia2V5In0",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLy4uL2tleSJ9",
		"continue=eyJ2IjoiIiwicnYiOi0xLCJzdGFydCI6Ii9rZXkifQ",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTUsInN0YXJ0IjoiL2tleSJ9",
	}
	for _, parameter := range parameters {
		for _, how := range []string{"workloads?", "environments/production-eu?", "environments/none?",
			"environments/production-eu?watch=true&timeoutSeconds=1&", "workloads?watch=true&timeoutSeconds=1&"} {
			questions = append(questions, Question{http.MethodGet, groupPath + how + parameter, "application/json"})
		}
	}
	for _, parameter := range []string{"watch", "watch=", "watch=1", "watch=t", "watch=True", "watch=yes",
		"watch=true&watch=false"} {
		questions = append(questions, Question{http.MethodGet, groupPath + "environments?timeoutSeconds=1&" + parameter,
			"application/json"})
	}
	return questions
}

// paths returns paths with additional slashes, unusual encodings and missing objects.
func paths() (questions []Question) {
	paths := []string{
		"//apis/" + Group + "/v1", "/API/v1/namespaces", "/favicon.ico", "/healthz/", "/openapi",
		"/apis//v1/x", "/apis/nope/", "/apis/nope/v1/x/y/z/a/b", "/apis/v1/namespaces", "/apis/demo",
		"/apis/" + Group + "/", "/apis/" + Group + "?timeout=32s", "/apis/" + Group + "/v9/", "/apis/" +
			Group + "//v1", "/apis/" + Group + "/V1/environments", "/apis/" + Group + "%2Fv1/environments",
		groupPath + "environments/", groupPath + "environments//", groupPath + "/environments", groupPath + "Environments", groupPath +
			"environment", groupPath + "environments%2Fproduction-eu",
		groupPath + "environments/production-eu/", groupPath + "environments/production-eu//", groupPath +
			"environments/production-eu/status/", groupPath + "environments/production-eu/scale", groupPath +
			"environments/production-eu%2Fstatus",
		groupPath + "environments/production%2Deu", groupPath + "environments/production%2Feu", groupPath +
			"environments/%20", groupPath + "environments/a%25b", groupPath + "environments/a+b", groupPath +
			"environments/a%3Fb", groupPath + "environments/ä", groupPath + "environments/A", groupPath +
			"environments/.", groupPath + "environments/%2e", groupPath + "environments/..",
		groupPath + "namespaces", groupPath + "namespaces/edge", groupPath + "namespaces/edge/", groupPath +
			"namespaces/edge/workloads/", groupPath + "namespaces/edge/workloads/dns/", groupPath +
			"namespaces/edge/namespaces/x", groupPath + "namespaces/edge/status", groupPath +
			"namespaces/edge/environments/production-eu",
		groupPath + "namespaces/%20/workloads", groupPath + "namespaces/a_b/workloads", groupPath +
			"namespaces/A/workloads/x", groupPath + "namespaces/edge%2Fx/workloads",
		"/api/v2/namespaces", "/api/v1/namespace", "/api/v1/nope/x", "/api/v1/nope/x/y", "/api/v1/nope/x/y/z",
		"/api/v1/namespaces/payments/nope", "/api/v1/namespaces/payments/nope/x",
		"/api/v1/namespaces/payments/namespaces",
		"/apis/apiextensions.k8s.io/v1/nope", "/apis/apiextensions.k8s.io/v9/nope",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none",
		"/apis/apiregistration.k8s.io/v1/apiservices/none", "/apis/apiregistration.k8s.io/v1/nope",
	}
	for _, path := range paths {
		for _, accept := range []string{"", asTable} {
			questions = append(questions, Question{http.MethodGet, path, accept})
		}
	}
	return questions
}
