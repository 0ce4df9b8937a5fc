// What a sanitizer is told in every program of ours, linked in so that it holds in any folder and for every child. Only
// for libraries of the distribution, which are not instrumented.

// ThreadSanitizer sees the memory they touch through intercepted calls (memmove, epoll_wait) but not the atomics and
// futexes by which they synchronise, and would report them as races with themselves: such calls from inside them are
// not looked at. Calls from our own code are.
//
// gRPC hands calls, messages and statuses from thread to thread in that unseen way, and its templates are compiled into
// our objects: reports with a frame of gRPC in them say nothing. So the shells around it are held by the annotations of
// their locks (--config=clang). The reference counts of Status and Cord are in libraries too. Everything without gRPC
// (engine, transports, agent's processes, output) is held here.
//
// A string that gRPC hands on that way is copied by libstdc++, on a stack without gRPC's frames; so copies by
// assignment, whose work is done in that library, are left out as well, ours too: what guards them is what guards the
// string's length, which is still looked at where it is inlined.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libprotobuf.so\n"
         "called_from_lib:libabsl_synchronization.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libcrypto.so\n"
         "called_from_lib:libssl.so\n"
         "race:libssl.so\n"
         "race:^grpc::\n"
         "race:^grpc_core::\n"
         "race:libgrpc.so\n"
         "race:libgrpc++.so\n"
         "race:libabsl_cord_internal.so\n"
         "race:libabsl_status.so\n"
         "race:^absl::debian3::Status::Unref\n"
         "race:libabsl_time_zone.so\n"
         "race:^std::__cxx11::basic_string<*>::_M_assign\n";
}
