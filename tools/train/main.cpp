// SPDX-License-Identifier: GPL-2.0
//
// dblp-train: the command line around server, worker and evaluation.

#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "dataset.hpp"
#include "message.hpp"
#include "model.hpp"
#include "server.hpp"
#include "transport.hpp"
#include "weights.hpp"
#include "worker.hpp"

namespace {

using Json = nlohmann::json;

constexpr const char* kDataFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kFooter = R"(
One server and its workers train a small network on Fashion-MNIST together, in
synchronous rounds, over DBLP or over TCP. Examples, each in its own shell:

  dblp-train server --transport tcp --listen 127.0.0.1:4000 --workers 2
  dblp-train worker --transport tcp --connect 127.0.0.1:4000 --workers 2 --rank 0
  dblp-train worker --transport tcp --connect 127.0.0.1:4000 --workers 2 --rank 1

Same seed, same model, same order of images, whatever the transport. A JSON file
has "schema": 1; times are in milliseconds or seconds as their names say.)";

struct Options {
  std::string address;
  std::string transport = "dblp";
  std::string congestion;
  std::string json;
  std::string weights;
  std::string data = kDataFolder;
  std::size_t images = train::kAllImages;
  std::uint32_t patience_s = 120;
  train::ServerOptions server;
  train::WorkerOptions worker;
};

train::Endpoint endpoint_of(const Options& options) {
  train::Endpoint endpoint;
  endpoint.transport = options.transport;
  endpoint.address = dblp::Address::parse(options.address).value();
  endpoint.congestion = options.congestion;
  endpoint.max_message = train::kHeaderBytes + train::kParameters * sizeof(float);
  return endpoint;
}

Json to_json(const train::Traffic& traffic) {
  Json json{{"payload", traffic.payload},
            {"sent", traffic.sent},
            {"tolerated", traffic.tolerated},
            {"retransmitted", traffic.retransmitted}};
  json["lost"] = traffic.lost ? Json(*traffic.lost) : Json(nullptr);
  return json;
}

void write_json(const std::string& path, const Json& json) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << json << '\n';
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

// No measured round should wait for a page of this program to be read. Nothing
// breaks where that is not allowed.
void keep_in_memory() { (void)mlockall(MCL_CURRENT); }

void serve(const Options& options) {
  auto server = options.server;
  server.patience = std::chrono::seconds(options.patience_s);
  const auto ready = [](const dblp::Address& address) {
    std::cout << "ready " << address.to_string() << std::endl;
  };
  auto transport = train::listen(endpoint_of(options), server.workers, ready,
                                 train::Clock::now() + server.patience)
                       .value();
  // A line for each round, for people and for programs that draw progress.
  const auto progress = [&](const train::RoundReport& round) {
    std::cout << "round " << round.round << ' ' << server.rounds << " loss " << round.loss
              << " missing " << round.missing << std::endl;
  };
  keep_in_memory();
  const auto report = train::serve(*transport, server, progress).value();

  Json rounds = Json::array();
  for (const auto& round : report.rounds)
    rounds.push_back({{"loss", round.loss}, {"missing", round.missing}});
  write_json(options.json, {{"schema", 1},
                            {"role", "server"},
                            {"transport", options.transport},
                            {"congestion", options.congestion},
                            {"workers", server.workers},
                            {"total_s", report.total_s},
                            {"rounds", rounds},
                            {"checksum", report.checksum},
                            {"bytes", to_json(report.traffic)}});
}

void work(const Options& options) {
  auto worker = options.worker;
  worker.patience = std::chrono::seconds(options.patience_s);
  const auto data = train::load_dataset(options.data, train::Split::kTrain, options.images).value();
  train::Model model(worker.seed);
  auto transport = train::connect(endpoint_of(options)).value();
  keep_in_memory();
  const auto report = train::work(*transport, worker, data, model).value();

  if (!options.weights.empty()) train::save_weights(options.weights, model).value();
  write_json(options.json, {{"schema", 1},
                            {"role", "worker"},
                            {"transport", options.transport},
                            {"congestion", options.congestion},
                            {"rank", worker.rank},
                            {"batch", worker.batch},
                            {"seed", worker.seed},
                            {"ready_s", report.ready_s},
                            {"round_ms", report.round_ms},
                            {"bytes", to_json(report.traffic)}});
}

void evaluate(const Options& options) {
  train::Model model(0);
  train::load_weights(options.weights, model).value();
  const auto data = train::load_dataset(options.data, train::Split::kTest).value();
  const auto quality = model.evaluate(data);
  std::cout << "accuracy " << quality.accuracy << " loss " << quality.loss << '\n';
  write_json(options.json, {{"schema", 1},
                            {"role", "evaluation"},
                            {"images", data.size()},
                            {"accuracy", quality.accuracy},
                            {"loss", quality.loss}});
}

void add_common(CLI::App& command, Options& options) {
  command.add_option("--transport", options.transport, "what carries the messages")
      ->check(CLI::IsMember({"dblp", "tcp"}))
      ->capture_default_str();
  command.add_option("--congestion", options.congestion,
                     "congestion control, as TCP_CONGESTION or DBLP_SO_CONGESTION takes it "
                     "(default: that of the kernel)");
  command.add_option("--workers", options.server.workers, "workers in all")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--patience", options.patience_s, "longest wait for a message, seconds")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--json", options.json, "write a report to this file");
}

const auto kAddress = CLI::Validator(
    [](const std::string& text) {
      auto address = dblp::Address::parse(text);
      return address ? std::string() : address.error().message();
    },
    "ADDRESS:PORT");

}  // namespace

int main(int argc, char** argv) {
  Options options;
  auto& worker = options.worker;
  CLI::App app("Trains a small network over a network that loses packets.", "dblp-train");
  app.footer(kFooter);
  app.require_subcommand(1);

  auto* server_command = app.add_subcommand("server", "adds up gradients");
  add_common(*server_command, options);
  server_command->add_option("--listen", options.address, "address to be reached at")
      ->required()
      ->check(kAddress);
  server_command->add_option("--rounds", options.server.rounds, "rounds to train")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();

  auto* worker_command = app.add_subcommand("worker", "computes gradients of its images");
  add_common(*worker_command, options);
  worker_command->add_option("--connect", options.address, "address of the server")
      ->required()
      ->check(kAddress);
  worker_command->add_option("--rank", worker.rank, "number of this worker, from 0")->required();
  worker_command->add_option("--batch", worker.batch, "images in each round")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  worker_command->add_option("--seed", worker.seed, "decides the model and the order of images")
      ->capture_default_str();
  worker_command->add_option("--rate", worker.rate, "learning rate at the start")
      ->capture_default_str();
  worker_command->add_option("--momentum", worker.momentum, "momentum")->capture_default_str();
  worker_command
      ->add_option("--tolerance-low", worker.schedule.low,
                   "share of a gradient that may get lost in critical rounds")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  worker_command->add_option("--tolerance", worker.schedule.high, "and in all other rounds")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  worker_command
      ->add_option("--critical", worker.schedule.critical,
                   "share of the rounds that are critical, the first ones")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  worker_command->add_option("--data", options.data, "folder of the data set")
      ->capture_default_str();
  worker_command
      ->add_option("--images", options.images,
                   "train with this many images, the first ones (0: all)")
      ->capture_default_str();
  worker_command->add_option("--weights", options.weights, "write the trained model here");

  auto* evaluate_command = app.add_subcommand("evaluate", "measures a trained model");
  evaluate_command->add_option("--weights", options.weights, "the model")->required();
  evaluate_command->add_option("--data", options.data, "folder of the data set")
      ->capture_default_str();
  evaluate_command->add_option("--json", options.json, "write a report to this file");

  CLI11_PARSE(app, argc, argv);
  try {
    worker.workers = options.server.workers;
    if (*worker_command && worker.rank >= worker.workers)
      throw std::invalid_argument("--rank is from 0 to one less than --workers");
    if (*server_command) serve(options);
    if (*worker_command) work(options);
    if (*evaluate_command) evaluate(options);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dblp-train: " << error.what() << '\n';
    return 1;
  }
}
