// Package web serves a page that shows the content of a factory: its types and their status, their objects,
// and changes. It is for one person in a browser. All files are embedded; there is no build step, and nothing
// is loaded from elsewhere.
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
// Every request needs a cookie, which [Handler.Login] gives to one browser per link. The Host must be a
// loopback address, or one of Options.Hosts; the Origin, if there is one, must be the page itself. The page
// is read-only. A strict Content-Security-Policy keeps the content of objects from being interpreted as
// anything but text. The values of Secrets are replaced by marks, unless Options.ShowSecrets is set, and
// queries cannot read them. Users of the page see all other data of the factory, because
// they read with the rights of the process.
//
// Expensive requests run a few at a time, for ten seconds at most. The number of streams is limited. Each
// stream has a bounded queue, and is closed if its browser does not read for ten seconds.
//
// # Concurrency
//
// A Handler is safe for concurrent use. It has one goroutine, which samples the figures of the types every
// two seconds until Close.
package web
