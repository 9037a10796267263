// Package web serves a page that shows the content of a factory: its types and their status, their objects,
// and changes. It is for one person in a browser. All files are embedded. There is no build step, and the
// page loads nothing from other sites.
//
// # Usage
//
//	handler, err := web.NewHandler(web.Source{Factory: factory, Binding: binding}, web.Options{})
//	defer handler.Close()
//	listener, err := net.Listen("tcp", "127.0.0.1:0")
//	fmt.Println("http://" + listener.Addr().String() + handler.Login())
//	err = (&http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}).Serve(listener)
//
// docs/web.md describes the page.
//
// # Security
//
// Every request needs a cookie. A link of [Handler.Login] gives a cookie to one browser. The Host must be a
// loopback address or one of Options.Hosts. The Origin, if there is one, must be the page itself. The page is
// read-only. With a strict Content-Security-Policy, browsers interpret the content of objects only as text.
// Unless Options.ShowSecrets is set, the values of Secrets are replaced by marks, and queries cannot read
// them. Users of the page see all other data of the factory, because they read with the rights of the
// process.
//
// The numbers of expensive requests and of streams are limited. A request takes at most ten seconds. Each
// stream has a bounded queue, and is closed if its browser does not read for ten seconds.
//
// # Concurrency
//
// A Handler is safe for concurrent use. It has one goroutine, which samples the figures of the types every
// two seconds until Close.
package web
