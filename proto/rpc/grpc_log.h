#pragma once

namespace farandole {

// From now on what gRPC would print on stderr is a line of our log at level debug: it prints one for each stranger
// whose handshake fails, which is nothing that a person has to see. For programs; a library has no say in this.
// Repeatable.
void QuietGrpc();

}  // namespace farandole
