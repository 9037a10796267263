package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/serving/web"
)

// Without the link of Login, the page shows nothing.
func Example() {
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: "https://cluster.example"}})
	must(err)
	page, err := web.NewHandler(web.Source{Title: "example", Factory: factory}, web.Options{})
	must(err)
	defer page.Close()

	ask := func(path string, cookies ...*http.Cookie) *http.Response {
		request := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path, nil)
		for _, c := range cookies {
			request.AddCookie(c)
		}
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, request)
		return answer.Result()
	}
	fmt.Println(ask("/").StatusCode)
	fmt.Println(ask("/", ask(page.Login()).Cookies()...).StatusCode)
	// Output:
	// 401
	// 200
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
