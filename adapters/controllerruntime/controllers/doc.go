// Package controllers starts, changes and stops controllers while a program runs, for types that are known
// only then, and that need not be installed: the kinds of a policy, a package or a template.
//
//	all, err := controllers.New(manager, 20) // its cache comes from controllerruntime.NewCache
//	err = all.Ensure("widgets", controllers.Settings{
//		For:        controllers.Type{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}},
//		Reconciler: reconciler,
//	})
//	err = all.Stop(ctx, "widgets")
//
// docs/run-time-types.md describes the behavior.
package controllers
